"""Table 1: which lengths are counted, and how an inference's time over them is measured.

Work, depth and paths are integers that the tree tells. Times are those of one sequence on the
device at hand: the paper's formulas have a number of processors in them, and that is its.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from prlstm import PRLSTM
from prlstm.environment import environment, place_of
from prlstm.files import Row
from prlstm.models.transformer import Encoder, EncoderOptions
from prlstm.report.rows import append_results

# powers of two, and lengths that are none
COUNTED = (
    *(2**k for k in range(13)), 3, 7, 10, 40, 41, 100, 127, 500, 1000, 1023, 3000, 4095,
)  # fmt: skip
# paths over the distance are those in a sequence of this length
LONGEST = 4096
DISTANCES = (*(2**k for k in range(12)), *(3 * 2**k for k in range(11)))
LENGTHS = {"cpu": [2**k for k in range(5, 13)], "cuda": [2**k for k in range(6, 17)]}

# features of a token, and sequences that are read at once
FEATURES, BATCH = 8, 1
# a point is measured for so long, but so often at least and at most
SECONDS, LEAST, MOST = 0.5, 3, 100

Read = Callable[[Tensor], object]


@dataclass(frozen=True)
class Timed:
    """One model, reading a sequence in one way: a function of the hidden size makes it."""

    name: str
    make: Callable[[int], tuple[nn.Module, Read]]


def _every_state(hidden_size: int) -> tuple[nn.Module, Read]:
    layer = PRLSTM(FEATURES, hidden_size, batch_first=True)
    return layer, layer


def _last_state(hidden_size: int) -> tuple[nn.Module, Read]:
    layer = PRLSTM(FEATURES, hidden_size, batch_first=True)
    return layer, lambda x: layer(x, output="last")


def _lstm(hidden_size: int) -> tuple[nn.Module, Read]:
    layer = nn.LSTM(FEATURES, hidden_size, batch_first=True)
    return layer, layer


def _transformer(hidden_size: int) -> tuple[nn.Module, Read]:
    # the benchmark's: its width is its own
    encoder = Encoder(FEATURES, EncoderOptions())
    return encoder, lambda x: encoder(x, None, None, lambda features: features)


TIMED = (
    Timed("lstm", _lstm),
    Timed("pr_lstm_all", _every_state),
    Timed("pr_lstm_last", _last_state),
    Timed("transformer_encoder", _transformer),
)


@dataclass(frozen=True)
class Growth:
    """The times of all models: what changes them is in here, but for the machine."""

    lengths: Sequence[int]
    hidden_size: int
    device: torch.device

    def __post_init__(self) -> None:
        if self.hidden_size < 1:
            raise ValueError(f"hidden_size={self.hidden_size}: expected hidden_size >= 1")

    def missing(self, rows: Sequence[Row]) -> list[tuple[Timed, int]]:
        """What is not among the rows yet, short sequences first."""
        made_with = environment(self.device)
        known = {_identity(row) for row in rows}
        return [
            (one, length)
            for length in self.lengths
            for one in TIMED
            if _identity(self._settings(one, length) | {"made_with": made_with}) not in known
        ]

    def measure(self, missing: Sequence[tuple[Timed, int]], path: Path) -> Iterator[Row]:
        """Time one after the other; each row is on disk when it is given."""
        made_with = environment(self.device)
        for one, length in missing:
            with torch.random.fork_rng(devices=[]):
                module, read = one.make(self.hidden_size)
            module.to(self.device).eval()
            generator = torch.Generator().manual_seed(length)
            x = torch.randn(BATCH, length, FEATURES, generator=generator).to(self.device)
            row = self._settings(one, length) | _timed(lambda: read(x), self.device)  # noqa: B023
            row["made_with"] = made_with
            append_results(path, [row])
            yield row

    def _settings(self, one: Timed, length: int) -> Row:
        sizes = {"length": length, "batch": BATCH, "hidden_size": self.hidden_size}
        return {"model": one.name, **sizes}


def _identity(row: Row) -> tuple[Any, ...]:
    """What a time depends on."""
    names = ("model", "length", "batch", "hidden_size")
    return (*(row[name] for name in names), *place_of(row["made_with"]))


def _timed(call: Callable[[], object], device: torch.device) -> Row:
    """The median time of a call, its quartiles and how many were timed; or why there is none."""
    try:
        with torch.inference_mode():
            # the first calls warm up
            _repeat(call, device, SECONDS / 5, 1)
            taken = _repeat(call, device, SECONDS, LEAST)
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return {"ms": None, "failed": "out of memory"}
    except RuntimeError as refused:
        # which has a longest sequence
        if "cuDNN" not in str(refused):
            raise
        return {"ms": None, "failed": str(refused).split(". ")[0]}
    low, middle, high = statistics.quantiles(taken, n=4, method="inclusive")
    quartiles = [round(low, 4), round(high, 4)]
    return {"ms": round(middle, 4), "ms_quartiles": quartiles, "repeats": len(taken)}


def _repeat(
    call: Callable[[], object], device: torch.device, seconds: float, least: int
) -> list[float]:
    """Milliseconds of one call after the other."""
    taken: list[float] = []
    while len(taken) < least or (sum(taken) < 1e3 * seconds and len(taken) < MOST):
        start = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        taken.append(1e3 * (time.perf_counter() - start))
    return taken
