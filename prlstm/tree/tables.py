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
from prlstm.tree.rows import chosen, fold_rows, pick
from prlstm.tree.scan import EMPTY, Blocks, Sweep, down_sweep, up_sweep
from prlstm.tree.spelling import LARGEST, Table, Words, tables_for

# merges that cost as much as one more level of tables
EXTRA = 16
# entries whose gradients are summed by a product
MOST_SUMMED = 1024
# above the tables: how many blocks are worth a look whether they repeat, and the share of different
# ones up to which it is worth computing these alone
LEAST_BLOCKS, MOST_DIFFERENT = 256, 0.75


class TableBlocks(Blocks):
    """Blocks of ids (B, T) along dimension 1: looked up to a level, computed above it."""

    def __init__(self, tables: Sequence[Table], states: list[Node], ids: Tensor) -> None:
        """The entries of every table are `states`."""
        self.tables, self.states, self.ids = tables, states, ids
        # of levels above the tables whose blocks repeat: which block is which of the different ones
        self.repeated: list[Tensor] = []
        self.above: tuple[Node, ...] = ()

    @property
    def top(self) -> int:
        """The highest level that is looked up."""
        return len(self.states) - 1

    def codes(self, level: int, start: int, stop: int, step: int = 1) -> Tensor:
        """Which entries some blocks of a level are: (B, blocks)."""
        if level < len(self.tables):
            return self.tables[level].codes(self.ids, start, stop, step)
        return self.repeated[level - len(self.tables)][:, start:stop:step]

    @overload
    def __getitem__(self, level: int) -> Node: ...
    @overload
    def __getitem__(self, level: slice) -> Sequence[Node]: ...
    def __getitem__(self, level: int | slice) -> Node | Sequence[Node]:
        if isinstance(level, slice):
            return tuple(self[k] for k in range(len(self))[level])
        level = range(len(self))[level]
        if level >= self.top and self.above:
            # all of them: the first may be one that waited
            return self.above[level - self.top]
        return self.some(level, 0, self.ids.shape[1] >> level)

    def __len__(self) -> int:
        return self.top + len(self.above)

    def some(self, level: int, start: int, stop: int, step: int = 1) -> Node:
        """See `Blocks`."""
        if level < self.top or not self.above:
            return look_up(self.states[level], self.codes(level, start, stop, step))
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
        if level >= len(self.tables):
            codes = self.codes(level, 0, self.ids.shape[1]).gather(1, place[:, None])
            return look_up(self.states[level], codes[:, 0])
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
    blocks = _up_sweep_ids(merge, alphabet, ids, words, plan, earlier)
    return Sweep(plan, 1, blocks, down_sweep(merge, blocks, 1, plan.levels, earlier), earlier)


def _up_sweep_ids(
    merge: MergeFunction, alphabet: Node, ids: Tensor, words: Words, plan: Plan, earlier: Carry
) -> TableBlocks:
    levels = plan.levels
    most = len(levels) - 2
    if plan.count:
        # blocks must begin where those of the whole sequence do
        most = min(most, (plan.count & -plan.count).bit_length() - 1)
    blocks = _blocks(merge, alphabet, ids, words, most)
    leaves = blocks.some(blocks.top, 0, ids.shape[1] >> blocks.top)
    blocks.above = up_sweep(merge, leaves, 1, levels[blocks.top :], earlier)
    return blocks


def tree_reduce_ids(
    merge: MergeFunction,
    alphabet: Node,
    ids: Tensor,
    words: Words,
    lengths: Tensor,
    pieces: Sequence[range] = (),
) -> Node:
    """Every row's prefix P(lengths[row]) of ids (B, T), with the states `alphabet` (V, ...).

    What `tree_reduce_rows` gives for the states of all ids, for fewer merges. With `pieces`, these
    are read one after the other.

    >>> merge = lambda left, right: (left[0] - right[0],)
    >>> ids = torch.tensor([[0, 1, 2], [0, 1, 2]])
    >>> alphabet = (torch.tensor([[1], [2], [3]]),)
    >>> tree_reduce_ids(merge, alphabet, ids, Words(3, 3), torch.tensor([3, 2]))
    (tensor([[-4],
            [-1]]),)
    """
    state: Node | None = None
    earlier = EMPTY
    for piece in pieces or [range(ids.shape[1])]:
        here, known = ids[:, piece.start : piece.stop], words.part(piece)
        is_last = piece.stop == ids.shape[1]
        found, earlier = _reduce_rows(
            merge, alphabet, here, known, lengths, earlier, is_last=is_last
        )
        # a row that ended before keeps what it had
        state = found if state is None else chosen(lengths > piece.start, found, state)
    assert state is not None
    return state


def _reduce_rows(
    merge: MergeFunction,
    alphabet: Node,
    ids: Tensor,
    words: Words,
    lengths: Tensor,
    earlier: Carry,
    *,
    is_last: bool,
) -> tuple[Node, Carry]:
    """The prefixes of rows that end here, others get any; and the carry, empty if `is_last`."""
    plan = Plan(ids.shape[1], ids.shape[1] - 1, earlier.count)
    *levels, top = plan.levels
    blocks = _up_sweep_ids(merge, alphabet, ids, words, plan, earlier)
    state = tuple(t[:, 0] for t in earlier.fold(top.index)) if top.before else None
    for level in reversed(levels):
        count = lengths >> level.index
        block = blocks.at(level.index, count - 1 - level.blocks.start)
        state = fold_rows(merge, state, block, count)
        if level.before % 2:
            known = tuple(t[:, 0] for t in earlier.fold(level.index))
            state = chosen(count == level.before, known, state)
    assert state is not None
    if is_last:
        return state, EMPTY
    prefixes = down_sweep(merge, blocks, 1, plan.levels, earlier)
    return state, Sweep(plan, 1, blocks, prefixes, earlier).carry()


def _blocks(
    merge: MergeFunction, alphabet: Node, ids: Tensor, words: Words, most: int
) -> TableBlocks:
    """With all tables that are worth it, and nothing computed for each row yet."""
    rows, tokens = ids.shape
    # on a GPU gradients are products with all entries
    is_product = torch.is_grad_enabled() and ids.device.type != "cpu"
    entries = MOST_SUMMED if is_product else LARGEST
    tables = tables_for(words, tokens, rows, most=most, extra=EXTRA, entries=entries)
    blocks = TableBlocks(tables, fill_tables(merge, alphabet, tables, ids.device), ids)
    _add_repeated(merge, blocks, most)
    return blocks


def _add_repeated(merge: MergeFunction, blocks: TableBlocks, most: int) -> None:
    """Of levels above the tables compute different blocks once, as long as many are the same.

    How many there are must be known at once: on a GPU the host would wait, and `vmap` and the
    compiler cannot know.
    """
    ids = blocks.ids
    is_known = ids.device.type == "cpu" and not torch.compiler.is_compiling()
    if not is_known or torch._C._functorch.is_functorch_wrapped_tensor(ids):
        return
    while blocks.top < most:
        level, entries = blocks.top, len(blocks.states[-1][0])
        paired = ids.shape[1] >> level + 1 << 1
        left, right = (blocks.codes(level, k, paired, 2) for k in range(2))
        if left.numel() < LEAST_BLOCKS:
            return
        different, which = torch.unique(left * entries + right, return_inverse=True)
        if len(different) > MOST_DIFFERENT * left.numel():
            return
        pair = (different // entries, different % entries)
        blocks.states.append(merge(*(look_up(blocks.states[-1], codes) for codes in pair)))
        blocks.repeated.append(which)
