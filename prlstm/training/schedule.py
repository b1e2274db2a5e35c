"""The learning rate as a function of the step."""

import math
from dataclasses import dataclass
from typing import Literal

from prlstm.tasks.check import read_count
from prlstm.training.check import read_number


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Constant, or falling to zero as half a cosine that ends at `decay_steps`.

    Before that the rate rises evenly over `warm_up` steps.
    """

    rate: float = 1e-3
    kind: Literal["constant", "cosine"] = "constant"
    warm_up: int = 0
    decay_steps: int = 1_000_000

    def __post_init__(self) -> None:
        rate = read_number("rate", self.rate)
        if not 0 < rate < math.inf:
            raise ValueError(f"rate={self.rate!r}: expected a finite number > 0")
        object.__setattr__(self, "rate", rate)
        if self.kind not in ("constant", "cosine"):
            raise ValueError(f"kind={self.kind!r}: expected 'constant' or 'cosine'")
        for name, least in (("warm_up", 0), ("decay_steps", 1)):
            read_count(name, getattr(self, name), least)

    def at(self, step: int) -> float:
        """The rate of a step; the first one is step 0."""
        rate = self.rate
        if step < self.warm_up:
            rate *= (step + 1) / self.warm_up
        if self.kind == "cosine":
            rate *= 0.5 * (1 + math.cos(math.pi * min(1.0, step / self.decay_steps)))
        return rate
