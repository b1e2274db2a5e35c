"""Blocks of few different tokens: computed once each, and looked up.

A block of 2^k letters out of V has at most V^(2^k) values, whatever the merge is. So the low levels
of a long tree are tables, and the merges left are those of the levels above, and of prefixes.
Gradients flow through what was looked up into the entries.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, overload

import torch
from torch import Tensor

from prlstm.tree.carry import Carry
from prlstm.tree.node import MergeFunction, Node, take
from prlstm.tree.plan import Plan
from prlstm.tree.rows import fold_rows, pick
from prlstm.tree.scan import EMPTY, Blocks, Sweep, down_sweep, up_sweep
from prlstm.tree.spelling import Table, Words, tables_for

# merges that cost as much as one more level of tables
EXTRA = 16


class TableBlocks(Blocks):
    """Blocks of ids (B, T) along dimension 1: looked up to a level, computed above it."""

    def __init__(self, tables: Sequence[Table], states: Sequence[Node], ids: Tensor) -> None:
        """The entries of every table are `states`."""
        self.tables, self.states, self.ids = tables, states, ids
        self.above: tuple[Node, ...] = ()

    @property
    def top(self) -> int:
        """The highest level that is looked up."""
        return len(self.tables) - 1

    @overload
    def __getitem__(self, level: int) -> Node: ...
    @overload
    def __getitem__(self, level: slice) -> Sequence[Node]: ...
    def __getitem__(self, level: int | slice) -> Node | Sequence[Node]:
        if isinstance(level, slice):
            return tuple(self[k] for k in range(len(self))[level])
        level = range(len(self))[level]
        return self.some(level, 0, self.ids.shape[1] >> level)

    def __len__(self) -> int:
        return self.top + len(self.above)

    def some(self, level: int, start: int, stop: int, step: int = 1) -> Node:
        """See `Blocks`."""
        if level < self.top or not self.above:
            codes = self.tables[level].codes(self.ids, start, stop, step)
            return look_up(self.states[level], codes)
        return take(self.above[level - self.top], 1, start, stop, step)

    def last(self, level: int) -> Node:
        """See `Blocks`."""
        count = self.ids.shape[1] >> level
        if level >= self.top:
            # a block that waited may stand before the new ones
            count = self.above[level - self.top][0].shape[1]
        return tuple(t.clone() for t in self.some(level, count - 1, count))

    def at(self, level: int, index: Tensor) -> Node:
        """For every row (B,) its own block of a level; rows that have none get any."""
        if level >= self.top:
            return pick(self.above[level - self.top], index)
        place = index.clamp(0, (self.ids.shape[1] >> level) - 1)
        token = (place << level)[:, None] + torch.arange(1 << level, device=place.device)
        codes = self.tables[level].codes(self.ids.gather(1, token))
        return look_up(self.states[level], codes[:, 0])


def look_up(states: Node, codes: Tensor) -> Node:
    """The entries (V, ...) at some codes."""
    if codes.device.type == "cpu":
        return tuple(_entries(t, codes) for t in states)
    return tuple(
        _LookUp.apply(t, codes)  # type: ignore[no-untyped-call]
        for t in states
    )


def _entries(table: Tensor, codes: Tensor) -> Tensor:
    found = table.index_select(0, codes.flatten())
    return found.view(*codes.shape, *table.shape[1:])


class _LookUp(torch.autograd.Function):
    """Entries of a table; the gradient of each is a sum in fixed order, and nothing is waited for.

    PyTorch's own adds up in any order, or asks the device how many different codes there are.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(table: Tensor, codes: Tensor) -> Tensor:
        return _entries(table, codes)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.entries = inputs[0].shape[0]
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (codes,) = ctx.saved_tensors
        known = torch.arange(ctx.entries, device=codes.device)
        which = (known[:, None] == codes.flatten()).to(gradient.dtype)
        return which @ gradient.flatten(0, codes.dim() - 1), None


def fill_tables(
    merge: MergeFunction, alphabet: Node, tables: Sequence[Table], device: torch.device
) -> list[Node]:
    """The entries of all tables, from the states (V, ...) of all ids."""
    states = [look_up(alphabet, tables[0].spelled(device)[:, 0])]
    for below, table in pairwise(tables):
        codes = below.codes(table.spelled(device))
        states.append(merge(*(look_up(states[-1], codes[:, j]) for j in range(2))))
    return states


def sweep_ids(
    merge: MergeFunction,
    alphabet: Node,
    ids: Tensor,
    words: Words,
    earlier: Carry = EMPTY,
    start: int = 0,
) -> Sweep:
    """What `sweep` gives for the states of ids (B, T), for fewer merges.

    `alphabet` (V, ...) holds the states of all ids.
    """
    plan = Plan(ids.shape[1], start, earlier.count)
    levels = plan.levels
    most = len(levels) - 2
    if earlier.count:
        # blocks must begin where those of the whole sequence do
        most = min(most, (earlier.count & -earlier.count).bit_length() - 1)
    blocks = _blocks(merge, alphabet, ids, words, most)
    leaves = blocks.some(blocks.top, 0, ids.shape[1] >> blocks.top)
    blocks.above = up_sweep(merge, leaves, 1, levels[blocks.top :], earlier)
    return Sweep(plan, 1, blocks, down_sweep(merge, blocks, 1, levels, earlier), earlier)


def tree_reduce_ids(
    merge: MergeFunction, alphabet: Node, ids: Tensor, words: Words, lengths: Tensor
) -> Node:
    """Every row's prefix P(lengths[row]) of ids (B, T), with the states `alphabet` (V, ...).

    What `tree_reduce_rows` gives for the states of all ids, for fewer merges.

    >>> merge = lambda left, right: (left[0] - right[0],)
    >>> ids = torch.tensor([[0, 1, 2], [0, 1, 2]])
    >>> alphabet = (torch.tensor([[1], [2], [3]]),)
    >>> tree_reduce_ids(merge, alphabet, ids, Words(3, 3), torch.tensor([3, 2]))
    (tensor([[-4],
            [-1]]),)
    """
    levels = Plan(ids.shape[1]).levels
    blocks = _blocks(merge, alphabet, ids, words, len(levels) - 2)
    leaves = blocks.some(blocks.top, 0, ids.shape[1] >> blocks.top)
    blocks.above = up_sweep(merge, leaves, 1, levels[blocks.top :], EMPTY)
    state: Node | None = None
    for level in reversed(range(len(blocks))):
        count = lengths >> level
        state = fold_rows(merge, state, blocks.at(level, count - 1), count)
    assert state is not None
    return state


def _blocks(
    merge: MergeFunction, alphabet: Node, ids: Tensor, words: Words, most: int
) -> TableBlocks:
    """With all tables that are worth it, and nothing above them yet."""
    rows, tokens = ids.shape
    tables = tables_for(words, tokens, rows, most=most, extra=EXTRA)
    return TableBlocks(tables, fill_tables(merge, alphabet, tables, ids.device), ids)
