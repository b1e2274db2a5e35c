"""What is told while runs are trained and scored."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from prlstm.training.runs import RunFolder


@dataclass(frozen=True)
class Begun:
    """Some runs are trained together, from `step` to `steps`."""

    folders: Sequence[RunFolder]
    step: int
    steps: int


@dataclass(frozen=True)
class Stepped:
    """A step was made; a device may not have finished it."""

    step: int


@dataclass(frozen=True)
class Block:
    """A block of steps is done: their means, for each run (S,)."""

    folders: Sequence[RunFolder]
    step: int
    seconds: float
    loss: Tensor
    accuracy: Tensor
    norm: Tensor


@dataclass(frozen=True)
class Validated:
    """A run was validated; `best` if never better."""

    folder: RunFolder
    step: int
    accuracy: float
    best: bool


@dataclass(frozen=True)
class Saved:
    """All runs that are being trained were saved."""

    step: int


@dataclass(frozen=True)
class Stopped:
    """A run is trained no further before its last step: it is solved, or it failed."""

    folder: RunFolder
    step: int
    why: str
    failed: bool


@dataclass(frozen=True)
class Noted:
    """Something that a user may want to know, in a line."""

    line: str


@dataclass(frozen=True)
class Scoring:
    """A share of the words that make a score is answered."""

    folders: Sequence[RunFolder]
    weights: str
    share: float


@dataclass(frozen=True)
class Scored:
    """A run has a score."""

    folder: RunFolder
    weights: str
    score: float


Event = Begun | Stepped | Block | Validated | Saved | Stopped | Noted | Scoring | Scored
Report = Callable[[Event], None]
