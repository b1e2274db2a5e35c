"""Rows of one batch that stand at different counts: rows on dimension 0, the tree on 1."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from prlstm.tree.carry import Carry
from prlstm.tree.node import MergeFunction, Node
from prlstm.tree.plan import Plan
from prlstm.tree.scan import EMPTY, Sweep, up_sweep


class Pending(NamedTuple):
    """The carries of all rows, level by level.

    `blocks[k]` and `folds[k]` hold a state of every row. Those rows use it whose count has the
    binary digit k; what the others hold there means nothing. Where no row has it they are `None`.
    """

    blocks: tuple[Node | None, ...]
    folds: tuple[Node | None, ...]

    def carry(self, count: int) -> Carry:
        """The same as a carry, where all rows stand at `count`."""
        return Carry(count, self.blocks, self.folds)


def levels_in_use(counts: int | Sequence[int]) -> list[bool]:
    """For every level, whether any row has a block waiting there; one number for equal counts."""
    used = 0
    for count in [counts] if isinstance(counts, int) else counts:
        used |= count
    return [bool(used >> level & 1) for level in range(used.bit_length())]


def tree_reduce_rows(merge: MergeFunction, leaves: Node, lengths: Tensor) -> Node:
    """Every row's prefix P(lengths[row]) alone, without the tree's dimension.

    Fewer than T merges for the blocks of all rows, and for every level at most one more that
    folds the blocks of each row. Nothing is read back: `lengths` (B,) may be on any device.

    >>> merge = lambda left, right: (left[0] - right[0],)
    >>> tree_reduce_rows(merge, (torch.tensor([[1, 2, 3], [1, 2, 3]]),), torch.tensor([3, 2]))
    (tensor([-4, -1]),)
    """
    blocks = up_sweep(merge, leaves, 1, Plan(leaves[0].shape[1]).levels, EMPTY)
    state: Node | None = None
    for level in reversed(range(len(blocks))):
        count = lengths >> level
        state = fold_rows(merge, state, pick(blocks[level], count - 1), count)
    assert state is not None
    return state


def fold_rows(merge: MergeFunction, state: Node | None, block: Node, count: Tensor) -> Node:
    """Every row's fold with its block of the next lower level, of which it has `count`."""
    if state is None:
        return block
    # a row of an even count has no block here, and waits
    state = chosen(count % 2 == 1, merge(state, block), state)
    # one whose biggest block this is, begins here
    return chosen(count == 1, block, state)


def chosen(rows: Tensor, node: Node, other: Node) -> Node:
    """For some rows one node, for the others the other."""
    return tuple(
        torch.where(rows.view(-1, *[1] * (a.dim() - 1)), a, b)
        for a, b in zip(node, other, strict=True)
    )


def prefix_at(done: Sweep, ends: Tensor) -> Node:
    """Every row's prefix P(ends[row]), without the tree's dimension."""
    return pick(done.read, ends - (done.plan.count + done.plan.start + 1))


def pending_at(done: Sweep, counts: int | Sequence[int], ends: Tensor) -> Pending:
    """What every row keeps when it ends at its own count; `ends` holds `counts` on the device."""
    levels = done.plan.levels
    blocks: list[Node | None] = []
    folds: list[Node | None] = []
    for index, used in enumerate(levels_in_use(counts)):
        if not used:
            block, fold = None, None
        elif index < len(done.blocks):
            level, here = levels[index], ends >> index
            block = pick(done.blocks[index], here - 1 - level.blocks.start)
            fold = pick(done.prefixes[index], here - level.prefixes.start)
            block, fold = (tuple(t.unsqueeze(1) for t in node) for node in (block, fold))
        else:
            # nothing new reached this level in any row
            block, fold = done.earlier.blocks[index], done.earlier.folds[index]
        blocks.append(block)
        folds.append(fold)
    return Pending(tuple(blocks), tuple(folds))


def pick(node: Node, index: Tensor) -> Node:
    """For every row the state at its own index; rows that have none get any."""
    rows = torch.arange(index.shape[0], device=index.device)
    index = index.clamp(0, node[0].shape[1] - 1)
    return tuple(t[rows, index] for t in node)
