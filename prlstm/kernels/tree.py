"""The tree of an LSTM cell on a GPU: what `prlstm.tree.sweep` computes, by kernels."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import torch
from torch import Tensor

from prlstm.kernels.layout import PREFIXES, Layout, lay_out
from prlstm.kernels.nodes import Nodes
from prlstm.kernels.operator import LAST, sweep_forward
from prlstm.tree import Carry, Node, Plan, Sweep


@dataclass(frozen=True)
class _Levels(Sequence[Node]):
    """The nodes of each level, made when they are asked for."""

    depth: int
    make: Callable[[int], Node]

    @overload
    def __getitem__(self, level: int) -> Node: ...
    @overload
    def __getitem__(self, level: slice) -> tuple[Node, ...]: ...
    def __getitem__(self, level: int | slice) -> Node | tuple[Node, ...]:
        if isinstance(level, slice):
            return tuple(self.make(k) for k in range(self.depth)[level])
        return self.make(range(self.depth)[level])

    def __len__(self) -> int:
        return self.depth

    def __iter__(self) -> Iterator[Node]:
        return map(self.make, range(self.depth))


def sweep_lstm(
    x: Tensor,
    weights: list[Tensor],
    biases: list[Tensor],
    earlier: Carry,
    start: int,
    *,
    operand: torch.dtype,
    precision: str,
    keep: str,
) -> Sweep:
    """All of the tree over tokens `x` (B, T, D): leaf, composition and refinements.

    `weights` and `biases` are those of the leaf, the composition and each refinement; h comes out
    in their type. `operand` is the type of products, `precision` that of float32 ones.
    """
    plan = Plan(x.shape[1], start, earlier.count)
    layout = lay_out(plan.length, plan.start, plan.count)
    memory = sweep_forward(
        x[None],
        [weight[None] for weight in weights],
        [bias[None] for bias in biases],
        _carried(layout, earlier),
        plan.start,
        plan.count,
        operand,
        precision,
        keep,
    )
    made = _Made(plan, layout, [t[0] for t in memory], weights[0], is_last=keep == LAST)
    levels = len(layout.sizes)
    return Sweep(plan, 1, _Levels(levels, made.blocks), _Levels(levels, made.prefixes), earlier)


def _carried(layout: Layout, earlier: Carry) -> list[Tensor]:
    """What the sweep needs of an earlier part of the stream: (1, B, 1, H) each."""
    nodes = [earlier.block(level) for level in layout.waiting]
    nodes += [earlier.fold(level) for _, level in layout.from_folds]
    return [t[None] for node in nodes for t in node]


@dataclass(frozen=True)
class _Made:
    """The nodes that a sweep left in its memory, as the tree names them."""

    plan: Plan
    layout: Layout
    memory: list[Tensor]
    weight: Tensor
    is_last: bool

    def blocks(self, level: int) -> Node:
        """Those of a level; where only the one that waits was kept, that one."""
        if self.is_last:
            place = 2 + 2 * self.layout.pending.index(level)
            return self._node(*self.memory[place : place + 2])
        batch = self.memory[0].shape[0]
        first, size = batch * self.layout.offsets[level], self.layout.sizes[level]
        every = (t[first : first + batch * size] for t in self.memory[2:4])
        h, c = (t.view(batch, size, -1)[:, : self.layout.counts[level]] for t in every)
        return self._node(h, c)

    def prefixes(self, level: int) -> Node:
        """Those that end where a block of a level ends."""
        wanted = self.plan.levels[level].prefixes
        slots = [self.layout.slot(j << level) for j in (wanted[0], *wanted[1:2])] if wanted else []
        h, c = self.memory[:2]
        if not slots:
            return self._node(h[:, :0], c[:, :0])
        step = 1 << level
        if len(slots) == 1 or slots[1] - slots[0] == step:
            return self._node(*(t[:, slots[0] :: step] for t in (h, c)))
        return self._node(
            *(torch.cat((t[:, slots[0], None], t[:, slots[1] :: step]), 1) for t in (h, c))
        )

    def _node(self, h: Tensor, c: Tensor) -> Node:
        """Without the features that are padding, h in the type of the weights."""
        size = self.weight.shape[0] // 3
        return h[..., :size].to(self.weight.dtype), c[..., :size]
