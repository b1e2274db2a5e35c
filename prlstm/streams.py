"""Streams, many at a time: fed one token each, in place, for a server.

`PRLSTM.step` does the same as a value, with gradients.
"""

from collections.abc import Sequence
from typing import Protocol, cast

import numpy as np
import torch
from torch import Tensor

from prlstm.cells import Cell, LSTMCell
from prlstm.dispatch import Reader, weights_of
from prlstm.inputs import Active, read_active, read_tokens
from prlstm.kernels.streams import KernelSlots
from prlstm.layer import PRLSTM
from prlstm.lengths import TIME
from prlstm.state import State, agreed, row_numbers
from prlstm.state_shape import StateShape
from prlstm.tree import Node
from prlstm.tree.rows import Pending, levels_in_use
from prlstm.tree.streams import Increment, Integers, add_leaves, last_prefixes, put_states

Rows = Tensor | Sequence[int] | slice


class Slots(Protocol):
    """Where streams are kept and fed, by plain PyTorch or by kernels."""

    @property
    def h(self) -> Tensor:
        """The last h of every stream (rows, H)."""
        ...

    def waiting(self, layer: int) -> tuple[list[Node], list[Node]]:
        """The blocks and prefixes of a layer that wait at every level, (rows, size) each."""
        ...

    def grow(self, levels: int) -> None:
        """Have so many levels, or more."""
        ...

    def step(self, x: Tensor, plan: Increment) -> Tensor:
        """H (rows, H) after one more token `x` (rows, D), or id (rows,), of some rows."""
        ...


class PlainSlots:
    """Streams of any cells."""

    def __init__(self, readers: Sequence[Reader], rows: int, like: Tensor) -> None:
        self.readers, self.rows = readers, rows
        self._layers: list[tuple[list[Node], list[Node]]] = [([], []) for _ in readers]
        self._like: list[Node] = []
        # no token: what comes of it tells sizes and types
        x = like.new_zeros(0, readers[0].input_size)
        for reader in readers:
            leaf, _ = reader.functions(x)
            self._like.append(leaf(x))
            x = self._like[-1][0]
        self.h = self._zeros(self._like[-1])[0]

    def waiting(self, layer: int) -> tuple[list[Node], list[Node]]:
        """See `Slots`."""
        return self._layers[layer]

    def grow(self, levels: int) -> None:
        """See `Slots`."""
        for like, halves in zip(self._like, self._layers, strict=True):
            for half in halves:
                half += [self._zeros(like) for _ in range(levels - len(half))]

    def step(self, x: Tensor, plan: Increment) -> Tensor:
        """See `Slots`."""
        rows = plan.on(x.device)
        x = x.index_select(0, rows.order)
        for reader, (blocks, folds) in zip(self.readers, self._layers, strict=True):
            leaf, merge = reader.functions(x)
            block, prefix = add_leaves(merge, leaf(x), plan, rows, blocks, folds)
            put_states(blocks, plan.waiting, rows.order, block)
            put_states(folds, plan.waiting, rows.order, prefix)
            x = prefix[0]
        self.h.index_copy_(0, rows.order, x)
        return self.h.clone()

    def _zeros(self, like: Node) -> Node:
        return tuple(t.new_zeros(self.rows, *t.shape[1:]) for t in like)


class Streams:
    """Many streams of one layer, each at its own position, in slots that are changed in place.

    A slot is a row of every batch that `step` is given. That is inference: without gradients or
    dropout. On a CUDA device where the layer's trees are computed by kernels, a step is one replay
    of a CUDA graph, whatever the positions and whichever rows have a token. Whether that is
    so, and in which precision products are computed, is settled when this is made: make it where
    autocast is on. The layer's weights may change, and are read anew at every step.

    >>> layer = PRLSTM(input_size=3, hidden_size=8)
    >>> streams = Streams(layer, rows=4)
    >>> h = streams.step(torch.randn(4, 3), active=[True, True, False, True])
    >>> streams.reset([1])
    >>> h.shape, streams.counts
    (torch.Size([4, 8]), (1, 0, 0, 1))
    >>> _, state = layer(torch.randn(5, 1, 3))
    >>> streams.put([2], state)
    >>> streams.state([0, 2]).counts
    (1, 5)
    """

    def __init__(self, layer: PRLSTM, rows: int) -> None:
        if not isinstance(layer, PRLSTM):
            raise TypeError(f"layer is a {type(layer).__name__}: expected a PRLSTM")
        if layer.bidirectional:
            raise ValueError(
                "layer is bidirectional: expected bidirectional=False, "
                "the reverse direction of a sequence begins at its end"
            )
        if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1:
            raise ValueError(f"rows={rows!r}: expected an integer >= 1")
        self.layer, self.rows = layer, rows
        self._counts = np.zeros(rows, np.int64)
        weight = _weight_of(layer)
        self._device, self._dtype = weight.device, weight.dtype
        kind = weight.device.type
        self._half: torch.dtype | None = None
        if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
            self._half = torch.get_autocast_dtype(kind)
        self._slots = self._made(weight)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many leaves every stream has behind it: its tokens, as `State.counts` has it."""
        return tuple(self._counts.tolist())

    def __repr__(self) -> str:
        low, high = self._counts.min(), self._counts.max()
        return f"Streams({self.layer}, rows={self.rows}, leaves seen: {low}..{high})"

    @torch.no_grad()
    def step(self, x: Tensor, active: Active | None = None) -> Tensor:
        """H (rows, H) after one more token for every stream, or for the active ones.

        `x` is (rows, D), or ids (rows,). What stands there for rows that are not `active` (rows,)
        changes nothing; they keep their state, and give their last h again, zeros before the first
        token. `active` is best a list or a NumPy array: of a tensor on a GPU the host must wait.
        """
        batch = read_tokens(x, self.layer.input_size)
        if not batch.batched or len(x) != self.rows:
            raise ValueError(
                f"x has shape {tuple(x.shape)}: expected {self.rows} rows, one for each stream"
            )
        chosen = read_active(active, self.rows)
        weight = self._weight()
        with torch.autocast(self._device.type, self._half, enabled=self._half is not None):
            batch.check_type(weight, "x")
            plan = Increment.of(self._counts, chosen)
            self._grow(self._counts[plan.order] + 1)
            h = self._slots.step(x, plan)
        self._counts[plan.order] += 1
        return h

    def reset(self, rows: Rows = slice(None)) -> None:
        """Begin anew in some slots, or in all."""
        chosen = row_numbers(rows, self.rows)
        self._counts[chosen] = 0
        self._slots.h[self._index(chosen)] = 0

    @torch.no_grad()
    def state(self, rows: Rows = slice(None)) -> State:
        """Where some streams stand, or all: a copy, as the layer itself would have given it."""
        chosen = row_numbers(rows, self.rows)
        index, seen = self._index(chosen), agreed(tuple(self._counts[chosen].tolist()))
        used = levels_in_use(seen)

        def states(node: Node) -> Node:
            # h has the type of the weights, in whatever type it was multiplied
            h, *others = (t[index] for t in node)
            return (h.to(self._dtype), *others)

        def select(levels: Sequence[Node]) -> tuple[Node | None, ...]:
            chosen = (
                states(node) if use else None for node, use in zip(levels, used, strict=False)
            )
            return tuple(node and tuple(t.unsqueeze(TIME) for t in node) for node in chosen)

        pending, finals = [], []
        for layer in range(self.layer.num_layers):
            blocks, folds = self._slots.waiting(layer)
            finals.append(states(last_prefixes(self._counts, folds)))
            pending.append(Pending(select(blocks), select(folds)))
        return State(
            final=tuple(torch.stack(tensors) for tensors in zip(*finals, strict=True)),
            pending=tuple(pending),
            seen=seen,
            cell=self.layer.cell,
        )

    @torch.no_grad()
    def put(self, rows: Rows, state: State) -> None:
        """Go on from a state in some slots: its rows in turn, each in the slot of that number."""
        chosen = row_numbers(rows, self.rows)
        if len(set(chosen)) < len(chosen):
            raise ValueError(f"rows={rows}: expected every slot once")
        if not isinstance(state, State):
            raise TypeError(f"state is a {type(state).__name__}: expected a State")
        shape = StateShape(
            cell=self.layer.cell,
            layers=self.layer.num_layers,
            directions=1,
            rows=len(chosen),
            batched=True,
            sizes=cast(Cell, self.layer.layers[0]).state_sizes,
            name="state",
        )
        shape.check(state, self._weight())
        counts = np.array(state.counts, np.int64)
        self._grow(counts)
        index = self._index(chosen)
        for k, pending in enumerate(state.pending):
            for mine, given in zip(self._slots.waiting(k), pending, strict=True):
                for level, node in zip(mine, given, strict=False):
                    # what a row without a block has there is never looked at
                    for t, new in zip(level, node or (), strict=False):
                        t[index] = new.squeeze(TIME).to(t.dtype)
        self._slots.h[index] = state.final[0][-1].to(self._slots.h.dtype)
        self._counts[chosen] = counts

    @torch.no_grad()
    def _made(self, weight: Tensor) -> Slots:
        readers = self.layer.readers()
        found = [reader.kernels() for reader in readers]
        products = next((one[1] for one in found if one is not None), None)
        if products is None or None in found:
            slots: Slots = PlainSlots(readers, self.rows, weight)
        else:
            cells = self.layer.layers
            slots = KernelSlots(
                lambda: [weights_of(cast(LSTMCell, cell)) for cell in cells], products, self.rows
            )
        slots.grow(1)
        return slots

    def _weight(self) -> Tensor:
        weight = _weight_of(self.layer)
        if (weight.device, weight.dtype) != (self._device, self._dtype):
            raise ValueError(
                f"layer has weights of {weight.dtype} on {weight.device}: expected "
                f"{self._dtype} on {self._device}, as when these streams were made"
            )
        return weight

    def _grow(self, counts: Integers) -> None:
        """Have the levels that such counts need."""
        if len(counts):
            self._slots.grow(int(counts.max()).bit_length())

    def _index(self, rows: list[int]) -> Tensor:
        return torch.tensor(rows, dtype=torch.long, device=self._device)


def _weight_of(layer: PRLSTM) -> Tensor:
    """One that tells device and type; cells of one's own may have none."""
    weight = next(layer.parameters(), None)
    return torch.zeros(()) if weight is None else weight
