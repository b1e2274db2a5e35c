"""The tree of an LSTM cell on a GPU: what `prlstm.tree.sweep` computes, by kernels."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import overload

import torch
from torch import Tensor

from prlstm.kernels.choose import Products
from prlstm.kernels.layout import Layout, lay_out
from prlstm.kernels.operator import GATES, LAST, NODES, sweep_forward
from prlstm.kernels.stages import aligned
from prlstm.tree import Carry, Node, Plan, Sweep, Words
from prlstm.tree.constants import kept
from prlstm.tree.node import last, take
from prlstm.tree.scan import Blocks
from prlstm.tree.spelling import LARGEST, Table
from prlstm.tree.tables import MOST_SUMMED

# blocks of more tokens are never worth a table
HIGHEST = 5
# where there are no ids; PyTorch takes an empty list for one of tensors
NOT_SPELLED = [0, 0, 0, 0]


@dataclass(frozen=True)
class CellWeights:
    """Weights and biases of the leaf, the composition and each refinement; no biases, or all."""

    weights: list[Tensor]
    biases: list[Tensor]

    @property
    def hidden_size(self) -> int:
        """Features of a state."""
        return self.weights[0].shape[0] // 3

    @property
    def dtype(self) -> torch.dtype:
        """The type of the weights, and so of h."""
        return self.weights[0].dtype

    def stacked(self) -> tuple[list[Tensor], list[Tensor]]:
        """As those of one seed."""
        return [t[None] for t in self.weights], [t[None] for t in self.biases]


def sweep_lstm(
    x: Tensor,
    cell: CellWeights,
    products: Products,
    earlier: Carry,
    start: int,
    *,
    every: bool = False,
    checkpoint: bool = False,
) -> Sweep:
    """All of the tree over tokens `x` (B, T, D).

    Unless `every` node is asked for or a gradient is wanted, the sweep knows the prefixes that
    are read, and what the stream keeps. With `checkpoint` the backward pass computes each level's
    gates once more, instead of keeping those of all levels.
    """
    keep = _kept(every, checkpoint)
    plan = Plan(x.shape[1], start, earlier.count)
    layout = lay_out(plan.length, plan.start, plan.count)
    memory = sweep_forward(
        x[None],
        None,
        *cell.stacked(),
        _carried(layout, earlier),
        NOT_SPELLED,
        [plan.start, plan.count],
        *products,
        keep,
    )
    return _made(plan, layout, memory, cell.hidden_size, cell.dtype, earlier, is_last=keep == LAST)


def sweep_lstm_ids(
    ids: Tensor,
    words: Words,
    cell: CellWeights,
    products: Products,
    earlier: Carry,
    start: int,
    *,
    every: bool = False,
    checkpoint: bool = False,
    rounded: bool = False,
    most: int = HIGHEST,
) -> Sweep:
    """The same over ids (B, T) of one-hot tokens.

    Blocks of few of them are looked up, to level `most` at the highest. Where every node is asked
    for these are the leaves alone. With `rounded`, h is given in the type of products.
    """
    keep = _kept(every, checkpoint)
    plan = Plan(ids.shape[1], start, earlier.count)
    layout = lay_out(plan.length, plan.start, plan.count)
    size = cell.weights[0].shape[1]
    x = _tokens(Table(0, words.letters, words.fills(0, plan.length)), size, products, ids.device)
    memory = sweep_forward(
        x[None, None],
        ids[None],
        *cell.stacked(),
        _carried(layout, earlier),
        [
            words.letters,
            -1 if words.length is None else words.length,
            0 if every else most,
            MOST_SUMMED if torch.is_grad_enabled() else LARGEST,
        ],
        [plan.start, plan.count],
        *products,
        keep,
    )
    dtype = products.operand if rounded else cell.dtype
    return _made(plan, layout, memory, cell.hidden_size, dtype, earlier, is_last=keep == LAST)


def _make_tokens(table: Table, size: int, products: Products, device: torch.device) -> Tensor:
    """The one-hot tokens (V, D) of the first table, in its order, as the leaf reads them."""
    first = table.spelled(device)[:, 0]
    known = torch.arange(aligned(size), device=device)
    return (first[:, None] == known).to(products.operand)


_made_tokens = kept(_make_tokens)


def _tokens(table: Table, size: int, products: Products, device: torch.device) -> Tensor:
    make = _make_tokens if torch.compiler.is_compiling() else _made_tokens
    return make(table, size, products, device)


def _kept(every: bool, checkpoint: bool) -> str:
    """What a sweep leaves behind."""
    if torch.is_grad_enabled():
        return NODES if checkpoint else GATES
    return NODES if every else LAST


def _carried(layout: Layout, earlier: Carry) -> list[Tensor]:
    """What the sweep needs of an earlier part of the stream: (1, B, 1, H) each."""
    nodes = [earlier.block(level) for level in layout.waiting]
    nodes += [earlier.fold(level) for _, level in layout.from_folds]
    return [t[None] for node in nodes for t in node]


def _made(
    plan: Plan,
    layout: Layout,
    memory: list[Tensor],
    hidden_size: int,
    dtype: torch.dtype,
    earlier: Carry,
    *,
    is_last: bool,
) -> Sweep:
    made = _Made(plan, layout, [t[0] for t in memory], hidden_size, dtype, is_last)
    levels = len(layout.sizes)
    return Sweep(plan, 1, _Levels(levels, made.blocks), _Levels(levels, made.prefixes), earlier)


@dataclass(frozen=True)
class _Made:
    """The nodes that a sweep left in its memory, as the tree names them."""

    plan: Plan
    layout: Layout
    memory: list[Tensor]
    hidden_size: int
    dtype: torch.dtype
    is_last: bool

    def blocks(self, level: int) -> Node:
        """Those of a level; where only the ones that wait were kept, that one or none."""
        if self.is_last:
            if level not in self.layout.pending:
                return self._node(*(t[:, :0] for t in self.memory[:2]))
            place = 2 + 2 * self.layout.pending.index(level)
            return self._node(*self.memory[place : place + 2])
        batch = self.memory[0].shape[0]
        first, size = batch * self.layout.offsets[level], self.layout.sizes[level]
        every = (t[first : first + batch * size] for t in self.memory[2:4])
        h, c = (t.view(batch, size, t.shape[-1])[:, : self.layout.counts[level]] for t in every)
        return self._node(h, c)

    def prefixes(self, level: int) -> Node:
        """Those that end where a block of a level ends."""
        wanted = self.plan.levels[level].prefixes
        h, c = self.memory[:2]
        if not wanted:
            return self._node(h[:, :0], c[:, :0])
        first = self.layout.slot(wanted[0] << level)
        step = 1 << level
        if len(wanted) == 1:
            return self._node(*(t[:, first, None] for t in (h, c)))
        second = self.layout.slot(wanted[1] << level)
        if second - first == step:
            return self._node(*(t[:, first::step] for t in (h, c)))
        return self._node(*(torch.cat((t[:, first, None], t[:, second::step]), 1) for t in (h, c)))

    def _node(self, h: Tensor, c: Tensor) -> Node:
        """Without the features that are padding, h in the type that is asked for."""
        return h[..., : self.hidden_size].to(self.dtype), c[..., : self.hidden_size]


class _Levels(Blocks):
    """The nodes of each level, made when they are asked for: it may cost a copy."""

    def __init__(self, depth: int, make: Callable[[int], Node]) -> None:
        self.depth, self.make = depth, make
        self.made: dict[int, Node] = {}

    @overload
    def __getitem__(self, level: int) -> Node: ...
    @overload
    def __getitem__(self, level: slice) -> tuple[Node, ...]: ...
    def __getitem__(self, level: int | slice) -> Node | tuple[Node, ...]:
        if isinstance(level, slice):
            return tuple(self[k] for k in range(self.depth)[level])
        level = range(self.depth)[level]
        if level not in self.made:
            self.made[level] = self.make(level)
        return self.made[level]

    def __len__(self) -> int:
        return self.depth

    def some(self, level: int, start: int, stop: int, step: int = 1) -> Node:
        """See `Blocks`."""
        return take(self[level], 1, start, stop, step)

    def last(self, level: int) -> Node:
        """See `Blocks`."""
        return last(self[level], 1)
