"""Where every state of a sweep stands in memory: integers only, no tensors.

Blocks of level k are an array (B, sizes[k]), its size rounded up to an even number so that two
neighbours are one row of twice the length. Prefixes are one array (B, slots): after a few slots
for those that nobody reads but later prefixes need, P(t) for every t that is read, in order. So
a prefix is written once, where the caller reads it, and every level finds its own at a fixed
distance; the first of a level alone may stand among the few.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import torch

from prlstm.tree import Plan

# instead of a level of blocks: the array of prefixes
PREFIXES = -1


class Array(NamedTuple):
    """States `step` apart in the array of a level, as if from `start` on; the first at `first`."""

    level: int
    start: int
    step: int
    first: int


class Step(NamedTuple):
    """The merges of one level, `length` for each row of the batch; `row` were before them."""

    left: Array
    right: Array
    out: Array
    length: int
    row: int

    @property
    def is_up(self) -> bool:
        """Whether blocks are made, of neighbours that stand side by side."""
        return self.out.level != PREFIXES


@dataclass(frozen=True)
class Layout:
    """Arrays, and the steps that fill them."""

    # blocks at each level, their number rounded up, and how many stand before those of a level
    # in a buffer for all
    counts: tuple[int, ...]
    sizes: tuple[int, ...]
    offsets: tuple[int, ...]
    # slots of prefixes; those t that stand before the first that is read, and that one
    slots: int
    spine: tuple[int, ...]
    first_read: int
    leaves: Array
    steps: tuple[Step, ...]
    merges: int
    # levels whose first block waited for a partner
    waiting: tuple[int, ...]
    # slots whose prefix is the first block of a level, and those of a prefix brought along
    from_blocks: tuple[tuple[int, int], ...]
    from_folds: tuple[tuple[int, int], ...]
    # levels whose last block waits after the last leaf
    pending: tuple[int, ...]
    # levels of which not all blocks are merged: the others, behind those, are looked up
    partly: tuple[int, ...]

    @property
    def states(self) -> int:
        """Blocks of all levels."""
        return self.offsets[-1] + self.sizes[-1]

    def slot(self, t: int) -> int:
        """Where the prefix P(t) stands."""
        return _slot(t, self.spine, self.first_read)

    def read_upwards(self, level: int) -> int:
        """How many blocks of a level, the first ones, are merged to those above."""
        return sum(2 * s.length for s in self.steps if s.is_up and s.left.level == level)

    def needs_last_alone(self, level: int) -> bool:
        """Whether prefixes need no block of a level but its last."""
        needed = [s for s in self.steps if not s.is_up and s.right.level == level]
        return all(s.length == 1 and s.right.first == self.counts[level] - 1 for s in needed)


def lay_out(
    length: int,
    start: int = 0,
    count: int = 0,
    looked_up: int = 0,
    merged: tuple[int, ...] = (),
) -> Layout:
    """The arrays of the plan of three numbers; blocks up to a level are looked up, not merged.

    So are, of the levels above, those behind the first so many that are `merged`.
    """
    # the compiler looks into functions, and warns of caches
    make = _lay_out if torch.compiler.is_compiling() else _laid_out
    return make(length, start, count, looked_up, merged)


def _lay_out(
    length: int, start: int, count: int, looked_up: int, merged: tuple[int, ...]
) -> Layout:
    plan = Plan(length, start, count)
    levels = plan.levels
    low, high = count + start + 1, count + length
    starts = {k.prefixes.start << k.index for k in levels if k.after > 0}
    spine = tuple(sorted(t for t in starts if t < low))

    def slot(t: int) -> int:
        return _slot(t, spine, low)

    def prefixes(t: int, step: int) -> Array:
        return Array(PREFIXES, len(spine) + t - low, step, slot(t))

    def blocks(level: int, start: int, step: int = 1) -> Array:
        return Array(level, start, step, start)

    counts = [len(level.blocks) for level in levels[:-1]]
    sizes = [count + count % 2 for count in counts]
    steps: list[Step] = []
    row = 0
    for level, above in pairwise(levels[looked_up:-1]):
        made = above.after - above.before
        if level.index - looked_up < len(merged):
            made = min(made, merged[level.index - looked_up])
        k, out = level.index, blocks(above.index, above.before % 2)
        steps.append(Step(blocks(k, 0, 2), blocks(k, 1, 2), out, made, row))
        row += made
    for level in reversed(levels[:-1]):
        if level.merged:
            k, first, made = level.index, level.merged.start, len(level.merged)
            left = prefixes((first - 1) << k, 2 << k)
            right = blocks(k, first - 1 - level.blocks.start, 2)
            steps.append(Step(left, right, prefixes(first << k, 2 << k), made, row))
            row += made
    powers = [1 << k for k in range(high.bit_length()) if 1 << k > count]
    powers = [t for t in powers if t >= low or t in spine]
    return Layout(
        counts=tuple(counts),
        sizes=tuple(sizes),
        offsets=tuple(sum(sizes[:k]) for k in range(len(sizes))),
        slots=len(spine) + high - low + 1,
        spine=spine,
        first_read=low,
        leaves=blocks(0, count % 2),
        steps=tuple(steps),
        merges=row,
        waiting=tuple(level.index for level in levels[:-1] if level.before % 2),
        from_blocks=tuple((slot(t), t.bit_length() - 1) for t in powers),
        from_folds=tuple((slot(t), (t & -t).bit_length() - 1) for t in spine if t <= count),
        pending=tuple(k for k in range(len(sizes)) if high >> k & 1),
        partly=tuple(range(looked_up + 1, looked_up + 1 + len(merged))),
    )


_laid_out = lru_cache(maxsize=1024)(_lay_out)


def _slot(t: int, spine: tuple[int, ...], first_read: int) -> int:
    return spine.index(t) if t < first_read else len(spine) + t - first_read
