"""What the rows of each file hold, and what is wrong with a row that holds something else.

Whoever reads rows may rely on all that is described here, and on nothing else.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from prlstm.files import Row

SCORES, CURVES, FIGURE3 = "scores.jsonl", "curves.jsonl", "figure3.jsonl"
SCALING, GROWTH, GRADIENTS = "scaling.jsonl", "growth.jsonl", "gradients.jsonl"
# beyond that they are no counts, and no floats either
MOST = 2**63
# how a curve over length ends without a time
WITHOUT_TIME = ("memory", "refused")


@dataclass(frozen=True)
class Kind:
    """What a value is expected to be, in words and as a test."""

    expected: str
    holds: Callable[[Any], bool]

    def or_none(self) -> "Kind":
        """The same, or null where there is none."""
        return Kind(f"{self.expected}, or null", lambda value: value is None or self.holds(value))

    def list(self) -> "Kind":
        """Some of them, at least one."""
        return Kind(
            f"a list, of each {self.expected}",
            lambda value: isinstance(value, list) and bool(value) and all(map(self.holds, value)),
        )


def _is_whole(value: Any, least: int = 0) -> bool:
    return type(value) is int and least <= value < MOST


def _is_number(value: Any) -> bool:
    if type(value) is int:
        return -MOST < value < MOST
    return isinstance(value, float) and math.isfinite(value)


def _whole(least: int) -> Kind:
    return Kind(f"an integer >= {least}", lambda value: _is_whole(value, least))


def _one_of(*names: str) -> Kind:
    return Kind(" or ".join(map(repr, names)), lambda value: value in names)


def _is_setting(value: Any) -> bool:
    # of all settings this one alone is a number in the reports
    return isinstance(value, dict) and _is_whole(value.get("curriculum.longest", 1), 1)


def _is_made_with(value: Any) -> bool:
    return isinstance(value, dict) and all(
        name in value and kind.holds(value[name]) for name, kind in MADE_WITH.items()
    )


def _are_ranges(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_range, value))


def _is_range(value: Any) -> bool:
    is_pair = isinstance(value, list) and len(value) == 2
    return is_pair and all(_is_whole(end, 1) for end in value) and value[0] <= value[1]


TEXT = Kind("a text", lambda value: isinstance(value, str))
WHY = Kind("a text that says why", lambda value: isinstance(value, str) and bool(value))
NUMBER = Kind("a finite number", _is_number)
AMOUNT = Kind("a finite number >= 0", lambda value: _is_number(value) and value >= 0)
TIME = Kind("a finite number > 0", lambda value: _is_number(value) and value > 0)
SHARE = Kind("a number from 0 to 1", lambda value: _is_number(value) and 0 <= value <= 1)
# of what it was made with, what reports go by
MADE_WITH: Mapping[str, Kind] = {
    "device": TEXT, "threads": _whole(1), "cuda": TEXT.or_none(),
}  # fmt: skip
ORIGIN: Mapping[str, Kind] = {
    "made_with": Kind(f"an object with {', '.join(MADE_WITH)}", _is_made_with),
}
RUN: Mapping[str, Kind] = {
    "run": TEXT, "task": TEXT, "model": TEXT, "seed": _whole(0),
    "setting": Kind("an object of settings", _is_setting), **ORIGIN,
}  # fmt: skip
# whatever a run was to tell
FAILED: Mapping[str, Kind] = {
    **RUN, "failed": WHY, "weights": _one_of("none"), "step": _whole(0),
}  # fmt: skip
SCORE: Mapping[str, Kind] = {
    **RUN, "weights": _one_of("last", "best", "average"), "step": _whole(1), "seconds": AMOUNT,
    "samples": _whole(1), "score": SHARE,
    "lengths": Kind("a list of first and last lengths, as [[41, 500]]", _are_ranges),
    "correct": Kind("a list of lists", lambda value: isinstance(value, list)),
    "total": Kind("a list", lambda value: isinstance(value, list)),
}  # fmt: skip
CURVE: Mapping[str, Kind] = {
    **RUN, "step": _whole(1).list(), "seconds": AMOUNT.list(), "loss": NUMBER.list(),
    "accuracy": SHARE.list(),
}  # fmt: skip
POINT: Mapping[str, Kind] = {
    "task": TEXT, "curve": TEXT, "label": TEXT, "model": TEXT, "length": _whole(1),
    "batch": _whole(1), "hidden_size": _whole(1).or_none(), "stop_ms": TIME,
    "seconds": TIME.or_none(), "batches": _whole(0), "end": _one_of("", "time", *WITHOUT_TIME),
    "ms_mean": AMOUNT.or_none(), "peak_bytes": AMOUNT.or_none(), **ORIGIN,
}  # fmt: skip
TIMED: Mapping[str, Kind] = {
    "model": TEXT, "length": _whole(1), "batch": _whole(1), "hidden_size": _whole(1),
    "ms": TIME.or_none(), **ORIGIN,
}  # fmt: skip
NORMS: Mapping[str, Kind] = {
    "model": TEXT, "run": TEXT.or_none(), "length": _whole(1), "norms": AMOUNT.list(), **ORIGIN,
}  # fmt: skip
# weights that are no run's
FRESH: Mapping[str, Kind] = {**NORMS, "hidden_size": _whole(1), "seed": _whole(0)}


def what_is_wrong(name: str, row: Row) -> str | None:
    """What a row of a file may not hold, with what was expected; None if it is as it should be."""
    fields = _fields(name, row)
    for field, kind in fields.items():
        if field not in row:
            return f"no {field}, expected {kind.expected}"
        if not kind.holds(row[field]):
            return _said(row, field, kind.expected)
    if fields is SCORE:
        return _wrong_counts(row)
    if fields is CURVE:
        return _wrong_points(row)
    if fields is POINT and row["ms_mean"] is None and row["end"] not in WITHOUT_TIME:
        return _said(row, "ms_mean", f"{TIME.expected} where end={row['end']!r}")
    return None


def _fields(name: str, row: Row) -> Mapping[str, Kind]:
    """What a row is to hold: a run that failed tells less. Files of other names are not known."""
    if name in (SCORES, CURVES, FIGURE3):
        if "failed" in row or row.get("weights") == "none":
            return FAILED
        return SCORE if name == SCORES else CURVE
    if name == GRADIENTS:
        return FRESH if row.get("run") is None else NORMS
    return {SCALING: POINT, GROWTH: TIMED}.get(name, {})


def _said(row: Row, field: str, expected: str) -> str:
    return f"{field}={row[field]!r:.40}, expected {expected}"


def _wrong_points(row: Row) -> str | None:
    count = len(row["step"])
    for field in ("seconds", "loss", "accuracy"):
        if len(row[field]) != count:
            return f"{len(row[field])} values of {field}, expected {count}: one for each step"
    return None


def _wrong_counts(row: Row) -> str | None:
    """Thousands of numbers in every row: they are looked at all at once."""
    lengths = sum(last - first + 1 for first, last in row["lengths"])
    expected = f"integers >= 0: for each of {lengths} lengths a list, of as many sub-batches"
    correct = _integers(row["correct"])
    if correct is None or correct.ndim != 2 or correct.shape[0] != lengths or not correct.size:
        return _said(row, "correct", expected)
    total = _integers(_unpacked(row["total"], correct.shape[1]))
    if total is None or total.shape != correct.shape or total.min() < 1:
        one = "for each length one number or one for each sub-batch of `correct`"
        return _said(row, "total", f"integers >= 1: {one}")
    if correct.min() < 0:
        return f"correct={correct.min()} among others, expected {expected}"
    if (correct > total).any():
        place = np.argmax(correct - total)
        most, of = correct.flat[place], total.flat[place]
        return f"correct={most} where total={of}, expected no more right answers than all"
    return None


def _unpacked(total: Sequence[Any], batches: int) -> list[Any]:
    """A number for each sub-batch, where there is one for a length."""
    return [of if isinstance(of, list) else [of] * batches for of in total]


def _integers(values: Sequence[Any]) -> npt.NDArray[np.int64] | None:
    """An array, if they are as regular as one, and nothing but integers."""
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError):
        return None
    return cast(npt.NDArray[np.int64], array) if array.dtype.kind == "i" else None
