"""Axes of a chart: where a value stands in the picture, and which values are written beside it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

# values that are written along an axis: few enough to have room
MOST_TICKS = 6


@dataclass(frozen=True)
class Tick:
    """A value that is written beside an axis, and where."""

    at: float
    label: str


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high`, drawn from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    @staticmethod
    def around(values: Iterable[float], start: float, end: float, *, log: bool) -> "Axis":
        """An axis that holds all values, and 0 unless it is logarithmic."""
        known = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
        low, high = min(known, default=0.0), max(known, default=1.0)
        if log:
            if not known:
                low, high = 1.0, 10.0
            if low == high:
                low, high = low / 2, high * 2
            return Axis(low, high, start, end, log=True)
        low, high = min(low, 0.0), max(high, 0.0)
        return Axis(low, high if high > low else 1.0, start, end)

    def holds(self, value: float) -> bool:
        """Whether a value has a place."""
        return math.isfinite(value) and (value > 0 or not self.log)

    def place(self, value: float) -> float:
        """Where a value stands, to a tenth of a pixel."""
        low, high, here = (
            (math.log10(one) for one in (self.low, self.high, value))
            if self.log
            else (self.low, self.high, value)
        )
        share = (here - low) / (high - low)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> list[Tick]:
        """Round values inside."""
        values = _log_values(self.low, self.high) if self.log else _values(self.low, self.high)
        return [Tick(self.place(value), short(value)) for value in values]


def _values(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / (MOST_TICKS - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step for n in (1, 2, 5, 10) if (step := n * power) >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    # a multiple that is computed like this has no digits too many
    return [round(k * step, 12) for k in range(first, last + 1)]


def _log_values(low: float, high: float) -> list[float]:
    """Powers of ten; where there are few, 2 and 5 times them as well."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors in ((1,), (1, 3), (1, 2, 5)):
        some = [n * 10.0**k for k in range(first, last + 1) for n in factors]
        inside = [value for value in some if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
        if len(inside) >= 3:
            break
    every = -(-len(inside) // MOST_TICKS) if inside else 1
    return inside[::every]


def short(value: float) -> str:
    """A value as it is written beside an axis.

    >>> [short(value) for value in (0, 0.25, 40, 1500, 20_000, 1_000_000, 1e-7)]
    ['0', '0.25', '40', '1500', '20k', '1M', '1e-7']
    """
    size = abs(value)
    if size >= 1e9 or 0 < size < 1e-3:
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"{mantissa.removesuffix('.0')}e{int(exponent)}"
    for unit, letter in ((1e6, "M"), (1e4, "k")):
        if size >= unit:
            return f"{value / (1e3 if letter == 'k' else unit):g}{letter}"
    return f"{value:g}"
