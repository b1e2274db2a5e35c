"""The tree, level by level: every level is one call of the merge on all its nodes at once."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import overload

import torch
from torch import Tensor

from prlstm.tree.carry import Carry
from prlstm.tree.node import MergeFunction, Node, concat, interleave, last, size, take
from prlstm.tree.plan import Level, Plan

EMPTY = Carry()


def tree_scan(
    merge: MergeFunction, leaves: Node, dim: int = 1, *, start: int = 0, stop: int | None = None
) -> Node:
    """The prefixes P(start + 1), ..., P(stop) of `leaves`: all of them unless told otherwise.

    `merge(left, right)` takes and returns tuples of tensors that hold many states along `dim`;
    it must treat each on its own, and need not be associative. It is called at most
    2 floor(log2 T) times, on fewer than 2T states in all, and only on those that the asked
    prefixes need.

    >>> merge = lambda left, right: (left[0] - right[0],)
    >>> tree_scan(merge, (torch.tensor([1, 2, 3, 4]),), dim=0)
    (tensor([ 1, -1, -4,  0]),)
    """
    leaves, dim = _checked(leaves, dim)
    length = size(leaves, dim)
    stop = length if stop is None else stop
    if not (isinstance(start, int) and isinstance(stop, int) and 0 <= start < stop <= length):
        raise ValueError(
            f"start={start}, stop={stop}: expected 0 <= start < stop <= {length}, the leaves"
        )
    return sweep(merge, take(leaves, dim, 0, stop), dim, start=start).read


def tree_reduce(merge: MergeFunction, leaves: Node, dim: int = 1) -> Node:
    """The last prefix P(T) alone, without `dim`: exactly T - 1 merges.

    >>> merge = lambda left, right: (left[0] - right[0],)
    >>> tree_reduce(merge, (torch.tensor([1, 2, 3, 4]),), dim=0)
    (tensor(0),)
    """
    leaves, dim = _checked(leaves, dim)
    final = sweep(merge, leaves, dim, start=size(leaves, dim) - 1).read
    return tuple(t.squeeze(dim) for t in final)


def tree_extend(
    merge: MergeFunction, leaves: Node, carry: Carry = EMPTY, dim: int = 1
) -> tuple[Node, Carry]:
    """The prefixes of a sequence that goes on after `carry`, and the carry after it.

    Feeding a sequence in any pieces gives what `tree_scan` gives for the whole.

    >>> merge = lambda left, right: (left[0] - right[0],)
    >>> _, carry = tree_extend(merge, (torch.tensor([1, 2, 3]),), dim=0)
    >>> tree_extend(merge, (torch.tensor([4]),), carry, dim=0)[0]
    (tensor([0]),)
    """
    leaves, dim = _checked(leaves, dim)
    done = sweep(merge, leaves, dim, carry)
    return done.read, done.carry()


class Blocks(Sequence[Node], ABC):
    """The blocks of every level, however they come about."""

    @abstractmethod
    def some(self, level: int, start: int, stop: int, step: int = 1) -> Node:
        """Of a level the blocks `start, start + step, ...` before `stop`."""

    @abstractmethod
    def last(self, level: int) -> Node:
        """The last block of a level: a copy."""


class ComputedBlocks(Blocks):
    """Blocks that were all computed, along `dim`."""

    def __init__(self, levels: Sequence[Node], dim: int) -> None:
        self.levels, self.dim = levels, dim

    @overload
    def __getitem__(self, level: int) -> Node: ...
    @overload
    def __getitem__(self, level: slice) -> Sequence[Node]: ...
    def __getitem__(self, level: int | slice) -> Node | Sequence[Node]:
        return self.levels[level]

    def __len__(self) -> int:
        return len(self.levels)

    def some(self, level: int, start: int, stop: int, step: int = 1) -> Node:
        """Views."""
        return take(self.levels[level], self.dim, start, stop, step)

    def last(self, level: int) -> Node:
        """See `Blocks`."""
        return last(self.levels[level], self.dim)


@dataclass(frozen=True)
class Sweep:
    """Every node of one pass. `blocks[k]` and `prefixes[k]` hold what `plan.levels[k]` names.

    `plan.draw()` shows how they were merged.
    """

    plan: Plan
    dim: int
    blocks: "Blocks"
    prefixes: Sequence[Node]
    earlier: Carry

    def __repr__(self) -> str:
        blocks = ", ".join(str(size(level, self.dim)) for level in self.blocks)
        read = size(self.read, self.dim)
        return f"Sweep({self.plan}, blocks at each level: {blocks}, prefixes: {read})"

    @property
    def read(self) -> Node:
        """The prefixes that were asked for."""
        return self.prefixes[0]

    def carry(self) -> Carry:
        """What the stream keeps after the last leaf."""
        count = self.plan.count + self.plan.length
        blocks: list[Node | None] = []
        folds: list[Node | None] = []
        for level in range(count.bit_length()):
            if not count >> level & 1:
                block, fold = None, None
            elif level < len(self.blocks):
                block = self.blocks.last(level)
                # the biggest block is a prefix itself: keep it once
                alone = count >> level == 1
                fold = block if alone else last(self.prefixes[level], self.dim)
            else:
                # nothing new reached this level
                block, fold = self.earlier.blocks[level], self.earlier.folds[level]
            blocks.append(block)
            folds.append(fold)
        return Carry(count, tuple(blocks), tuple(folds))


def sweep(
    merge: MergeFunction, leaves: Node, dim: int, earlier: Carry = EMPTY, start: int = 0
) -> Sweep:
    """Go up and down the tree once, for the prefixes `start + 1 ..` of the new leaves."""
    plan = Plan(size(leaves, dim), start, earlier.count)
    levels = plan.levels
    blocks = ComputedBlocks(up_sweep(merge, leaves, dim, levels, earlier), dim)
    return Sweep(plan, dim, blocks, down_sweep(merge, blocks, dim, levels, earlier), earlier)


def up_sweep(
    merge: MergeFunction, leaves: Node, dim: int, levels: tuple[Level, ...], earlier: Carry
) -> tuple[Node, ...]:
    """The blocks of every level, from the first of `levels` on, whose new blocks are `leaves`."""
    blocks, nodes = [], leaves
    for level, above in pairwise(levels):
        if level.before % 2:
            nodes = concat(earlier.block(level.index), nodes, dim)
        blocks.append(nodes)
        paired = 2 * (above.after - above.before)
        if paired:
            left, right = take(nodes, dim, 0, paired, 2), take(nodes, dim, 1, paired, 2)
            nodes = checked_merge(merge, left, right)
    return tuple(blocks)


def down_sweep(
    merge: MergeFunction, blocks: Blocks, dim: int, levels: tuple[Level, ...], earlier: Carry
) -> tuple[Node, ...]:
    """The prefixes of every level."""
    top = levels[-1]
    # the highest prefix that new leaves do not reach; nothing at all in a fresh sequence
    above = earlier.fold(top.index) if top.after else blocks.some(top.index - 1, 0, 0)
    prefixes = []
    for level, parent in zip(levels[-2::-1], levels[:0:-1], strict=True):
        wanted = level.prefixes
        even = take(above, dim, (wanted.start + 1) // 2 - parent.prefixes.start, size(above, dim))
        if len(wanted) == 1 and wanted.start % 2 == 0:
            # as for every level below the highest new block when one leaf comes alone
            above = even
        else:
            odd = _odd_prefixes(merge, blocks, above, dim, level, parent, earlier)
            above = interleave(odd, even, dim) if wanted.start % 2 else interleave(even, odd, dim)
        prefixes.append(above)
    return tuple(reversed(prefixes))


def _odd_prefixes(
    merge: MergeFunction,
    blocks: Blocks,
    above: Node,
    dim: int,
    level: Level,
    parent: Level,
    earlier: Carry,
) -> Node:
    """P(j * 2^k) for the odd j of `level.prefixes`: merged, but for a first one that is known."""
    merged = level.merged
    first = level.prefixes.start | 1
    known = None
    if first <= level.after and first not in merged:
        is_old = first == level.before
        known = earlier.fold(level.index) if is_old else blocks.some(level.index, 0, 1)
    if not merged:
        return blocks.some(level.index, 0, 0) if known is None else known
    lefts = merged.start // 2 - parent.prefixes.start
    left = take(above, dim, lefts, lefts + len(merged))
    rights = merged.start - 1 - level.blocks.start
    right = blocks.some(level.index, rights, rights + 2 * len(merged) - 1, 2)
    result = checked_merge(merge, left, right)
    return result if known is None else concat(known, result, dim)


def checked_merge(merge: MergeFunction, left: Node, right: Node) -> Node:
    """`merge(left, right)`, which must look like its arguments."""
    result = merge(left, right)
    if not isinstance(result, tuple) or list(map(_shape, result)) != list(map(_shape, left)):
        raise ValueError(
            f"merge returned {_described(result)}: expected a tuple of tensors "
            f"shaped as its arguments are, {_described(left)}"
        )
    return result


def _shape(value: object) -> tuple[int, ...] | None:
    return tuple(value.shape) if isinstance(value, Tensor) else None


def _described(value: object) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(_described(item) for item in value)})"
    return f"Tensor{tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


def _checked(leaves: Node, dim: int) -> tuple[Node, int]:
    """`leaves` and a non-negative `dim`, or an error that names what is wrong."""
    if not isinstance(leaves, tuple) or not leaves or not all(map(torch.is_tensor, leaves)):
        raise TypeError(f"leaves={_described(leaves)}: expected a tuple of tensors")
    ranks = {t.dim() for t in leaves}
    if not isinstance(dim, int) or not all(-rank <= dim < rank for rank in ranks):
        raise ValueError(f"dim={dim}: out of range for leaves {_described(leaves)}")
    if dim < 0:
        # counted from the front, so that tensors of unequal rank agree on it
        if len(ranks) > 1:
            raise ValueError(f"dim={dim}: expected dim >= 0 for leaves {_described(leaves)}")
        dim += ranks.pop()
    lengths = {t.shape[dim] for t in leaves}
    if len(lengths) > 1 or 0 in lengths:
        raise ValueError(
            f"leaves={_described(leaves)}: expected one length >= 1 along dimension {dim}"
        )
    return leaves, dim
