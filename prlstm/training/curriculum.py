"""Which length the words of a step have: one for the whole batch and all seeds."""

import itertools
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from prlstm.stream import choice
from prlstm.tasks.check import read_count
from prlstm.training.check import read_number

# finer than any chance that a length may have
PARTS = 1 << 53


@dataclass(frozen=True, kw_only=True)
class Curriculum:
    """Lengths as a function of the step.

    `uniform`: from 1 to `longest`, all equally likely. `fixed`: always `longest`. `increasing`:
    uniform from 1 up to a bound that grows by one every `every` steps, as far as `longest`.
    `reverse_exponential`: from 1 to `longest`, length L with a chance that goes with `tau` ** L.
    """

    kind: Literal["uniform", "fixed", "increasing", "reverse_exponential"] = "uniform"
    longest: int = 40
    every: int = 1000
    tau: float = 0.9
    seed: int = 0

    def __post_init__(self) -> None:
        kinds = ("uniform", "fixed", "increasing", "reverse_exponential")
        if self.kind not in kinds:
            raise ValueError(f"kind={self.kind!r}: expected one of {', '.join(kinds)}")
        for name in ("longest", "every"):
            read_count(name, getattr(self, name))
        tau = read_number("tau", self.tau)
        if not 0 < tau < 1:
            raise ValueError(f"tau={self.tau}: expected a number with 0 < tau < 1")
        object.__setattr__(self, "tau", tau)

    def length(self, step: int) -> int:
        """The length of a step's words; the first one is step 0."""
        if self.kind == "fixed":
            return self.longest
        if self.kind == "reverse_exponential":
            drawn = choice(self.seed, "length", step, PARTS) / PARTS * self._upto[-1]
            return 1 + bisect_right(self._upto, drawn)
        most = self.longest
        if self.kind == "increasing":
            most = min(most, 1 + step // self.every)
        return 1 + choice(self.seed, "length", step, most)

    @cached_property
    def _upto(self) -> list[float]:
        """The weights of all lengths up to each."""
        weights = (self.tau**length for length in range(1, self.longest + 1))
        return list(itertools.accumulate(weights))
