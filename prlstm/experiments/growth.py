"""Table 1: what is counted in the tree, and how the time of an inference grows with the length.

Work, depth and paths are integers that the plan tells. Times are measured on one sequence, on
the device at hand: the paper's formulas have a number of processors in them, and that is its.
"""

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from prlstm import PRLSTM
from prlstm.environment import environment
from prlstm.files import Row
from prlstm.models.transformer import Encoder, EncoderOptions
from prlstm.report.rows import append_results
from prlstm.tree import Plan
from prlstm.tree.paths import Paths, Spread

# powers of two, and lengths between them
COUNTED = (1, 2, 3, 4, 7, 8, 16, 32, 40, 64, 100, 128, 256, 500, 512, 1000, 1024, 2048, 3000, 4095, 4096)  # fmt: skip # noqa: E501
LONGEST = COUNTED[-1]
DISTANCES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4095)  # fmt: skip # noqa: E501
# features of a token, and sequences read at once
FEATURES, BATCH = 8, 1
# a point is measured for so long, but so often at least and at most
SECONDS, LEAST, MOST = 0.5, 3, 50


@dataclass(frozen=True)
class Counted:
    """The merges of a sequence: for the states after every token, and for the last one alone."""

    length: int
    merges: int
    merges_last: int
    depth: int
    depth_last: int
    # from the tokens to the last state, and to every state behind them
    to_last: Spread
    to_every: Spread


@dataclass(frozen=True)
class Apart:
    """Paths between tokens at a distance: to the state after the later one, and to each other."""

    distance: int
    reach: Spread
    meeting: Spread


def counted(lengths: Iterable[int] = COUNTED) -> list[Counted]:
    """What the plan and its graph say of some lengths."""
    found = []
    for length in lengths:
        whole, last, paths = Plan(length), Plan(length, start=length - 1), Paths(length)
        found.append(
            Counted(
                length, whole.merges, last.merges, whole.depth, last.depth,
                paths.to_state(length), paths.to_states(),
            )
        )  # fmt: skip
    return found


def apart(length: int = LONGEST, distances: Iterable[int] = DISTANCES) -> list[Apart]:
    """Paths over the distance, of all pairs of a sequence's tokens."""
    paths = Paths(length)
    return [Apart(one, paths.reach_at(one), paths.apart_at(one)) for one in distances]


def _all_states(hidden_size: int) -> Callable[[Tensor], object]:
    return _layer(hidden_size)


def _last_state(hidden_size: int) -> Callable[[Tensor], object]:
    layer = _layer(hidden_size)
    return lambda x: layer(x, output="last")


def _layer(hidden_size: int) -> PRLSTM:
    return PRLSTM(FEATURES, hidden_size, batch_first=True)
