"""In which order the nodes of a tree are computed: integers only, no tensors.

Leaves are counted from 1. At level k stand the *blocks* `(k, j)`, perfect trees over the
leaves `j * 2^k + 1 .. (j + 1) * 2^k`. The *prefix* P(t), the state after t leaves, is the left
fold of the blocks of t's binary digits, biggest first. A whole pass goes up, making blocks,
then down, making the prefixes that are read:

    up      block(k + 1, j) = merge(block(k, 2j), block(k, 2j + 1))
    down    P(j * 2^k)      = merge(P((j - 1) * 2^k), block(k, j - 1))      for odd j > 1

An even j needs nothing at level k: P(j * 2^k) stands one level higher already. A stream that
goes on after `count` leaves follows the same rules; it brings along the blocks that had no
partner yet and the prefixes that end with them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from prlstm.tree.draw import Drawn, Row, draw_merges


@dataclass(frozen=True)
class Level:
    """The nodes of one level: blocks of `2^index` leaves, prefixes that end where a block ends."""

    index: int
    # complete blocks before the first new leaf, and after the last one
    before: int
    after: int
    # the first prefix that is read, in units of this level's blocks
    first_read: int

    @property
    def blocks(self) -> range:
        """Blocks at hand: the new ones and, before them, the one that waited for a partner."""
        return range(self.before - self.before % 2, self.after)

    @property
    def prefixes(self) -> range:
        """The j for which P(j * 2^index) is read, here or at a lower level."""
        return range(max(1, self.first_read), self.after + 1)

    @property
    def merged(self) -> range:
        """The prefixes made at this level: odd, new, and more than a block alone."""
        return range(max(self.first_read, self.before + 1, 2) | 1, self.after + 1, 2)


@dataclass(frozen=True)
class Merge:
    """One merge of neighbours: leaves `start..middle` with leaves `middle+1..stop`."""

    start: int
    middle: int
    stop: int


@dataclass(frozen=True)
class Step:
    """One batched call of the merge: `results` counts blocks (up) or prefixes (down)."""

    phase: Literal["up", "down"]
    level: int
    results: range

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Merge]:
        size = 1 << self.level
        for j in self.results:
            if self.phase == "up":
                yield Merge(j * size + 1, j * size + size // 2, (j + 1) * size)
            else:
                yield Merge(1, (j - 1) * size, j * size)


@dataclass(frozen=True)
class Plan:
    """The merges that give the prefixes `start + 1 .. length` of a sequence of `length` leaves.

    With `count`, the leaves follow `count` earlier ones whose carry is at hand; `start` and
    `length` count the new leaves alone.

    >>> plan = Plan(13)
    >>> plan.merges, len(plan.steps), plan.depth
    (19, 6, 5)
    >>> Plan(13, start=12).merges   # the last state alone: T - 1
    12
    """

    length: int
    start: int = 0
    count: int = 0

    def __post_init__(self) -> None:
        if self.length < 1:
            raise ValueError(f"length={self.length}: a tree needs at least one leaf")
        if not 0 <= self.start < self.length:
            raise ValueError(f"start={self.start}: expected 0 <= start < length={self.length}")
        if self.count < 0:
            raise ValueError(f"count={self.count}: expected a number of earlier leaves, >= 0")

    @property
    def levels(self) -> tuple[Level, ...]:
        """All levels that get a new block, and one more without."""
        levels, index, stop = [], 0, self.count + self.length
        while True:
            level = Level(
                index,
                before=self.count >> index,
                after=stop >> index,
                first_read=(self.count + self.start + 1) >> index,
            )
            levels.append(level)
            if level.before == level.after:
                return tuple(levels)
            index += 1

    @property
    def steps(self) -> tuple[Step, ...]:
        """The batched merge calls in order; each holds the merges of one level."""
        levels = self.levels
        up = (Step("up", level.index, range(level.before, level.after)) for level in levels[1:])
        down = (Step("down", level.index, level.merged) for level in reversed(levels))
        return tuple(step for step in (*up, *down) if step)

    @property
    def merges(self) -> int:
        """How many merges that is."""
        return sum(len(step) for step in self.steps)

    @property
    def depth(self) -> int:
        """The longest chain of merges from a leaf to a prefix that is read.

        P(t) folds the blocks of t's binary digits, and folding the first of them onto the
        biggest already costs more than any later block has inside: floor(log2 t) merges for
        the biggest, and one for every other digit.
        """
        lowest, highest = self.count + self.start + 1, self.count + self.length
        # most digits below `highest`: clear one of its digits, set all behind it
        fullest = [
            (highest >> bit) - 1 << bit | (1 << bit) - 1
            for bit in range(highest.bit_length())
            if highest >> bit & 1
        ]
        read = [highest, *(t for t in fullest if t >= lowest)]
        return max(t.bit_length() + t.bit_count() - 2 for t in read)

    def draw(
        self,
        width: int = 120,
        *,
        heads: Sequence[str] | None = None,
        leaves: Sequence[str] | None = None,
        results: Callable[["Step", "Merge"], str] | None = None,
    ) -> str:
        """The tree as text: a column per leaf, a row per step, a dot where two states meet.

        `heads` are written above the leaves instead of numbers, `leaves` and `results` instead of
        the dots. Raises `ValueError` where `width` characters do not hold it.
        """

        def drawn(step: Step) -> Iterator[Drawn]:
            for merge in step:
                said = "●" if results is None else results(step, merge)
                yield Drawn(merge.middle, merge.stop, said)

        rows = [Row(f"{step.phase} {step.level}", drawn(step)) for step in self.steps]
        return draw_merges(self.count + self.length, rows, width, heads, leaves)


def bracketing(count: int) -> str:
    """P(count) written with brackets.

    >>> bracketing(7)
    '((((1 2) (3 4)) (5 6)) 7)'
    """
    if count < 1:
        raise ValueError(f"count={count}: a prefix has at least one leaf")
    low = count & -count
    if low < count:
        return f"({bracketing(count - low)} {_block(count - low + 1, low)})"
    return _block(1, count)


def _block(first: int, size: int) -> str:
    if size == 1:
        return str(first)
    half = size // 2
    return f"({_block(first, half)} {_block(first + half, half)})"
