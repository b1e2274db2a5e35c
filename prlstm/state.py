"""The state of a layer between two calls: a value, not a handle."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.utils import _pytree as pytree

from prlstm.cells.precision import wide_type
from prlstm.tree import Carry, Node
from prlstm.tree.rows import Pending, levels_in_use

# The one key of a saved state's metadata. (More than one would be written in any order.)
FORMAT = "prlstm.State/1"

# What `torch.nn.LSTM` calls a state: (h_0, c_0), or h_0 alone where the cell has no c.
PlainState = Tensor | tuple[Tensor, ...]


@dataclass(frozen=True)
class StateShape:
    """What a state must be to fit a layer and a batch."""

    cell: str
    layers: int
    directions: int
    rows: int
    batched: bool
    # of the tensors of one state of the cell, h first
    sizes: tuple[int, ...]

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of (h_n, c_n)."""
        rows = (self.rows,) if self.batched else ()
        return tuple((self.layers * self.directions, *rows, size) for size in self.sizes)

    def check(self, name: str, tensors: Sequence[Tensor], weight: Tensor) -> None:
        """Raise unless `tensors` could be this layer's (h_n, c_n)."""
        if len(tensors) != len(self.sizes):
            raise ValueError(
                f"{name} holds {len(tensors)} tensors: "
                f"a state of cell {self.cell!r} has {len(self.sizes)}"
            )
        autocast = torch.is_autocast_enabled(weight.device.type)
        for index, (tensor, shape) in enumerate(zip(tensors, self.shapes, strict=True)):
            if not isinstance(tensor, Tensor):
                raise TypeError(f"{name}[{index}] is a {type(tensor).__name__}: expected a tensor")
            if tuple(tensor.shape) != shape:
                raise ValueError(
                    f"{name}[{index}] has shape {tuple(tensor.shape)}: expected {shape}, "
                    f"(layers * directions{', batch' if self.batched else ''}, hidden size)"
                )
            if tensor.device != weight.device:
                raise ValueError(
                    f"{name}[{index}] is on {tensor.device}: expected {weight.device}, "
                    "where the weights are"
                )
            # c is float32 also where the weights are of half precision
            same = wide_type(tensor.dtype) == wide_type(weight.dtype)
            if not tensor.is_floating_point() or not (same or autocast):
                raise TypeError(
                    f"{name}[{index}] has type {tensor.dtype}: expected {weight.dtype}, "
                    "as the weights have"
                )

    def first_carries(self, hx: PlainState | None, weight: Tensor) -> list[Carry]:
        """Where to begin, for each layer and direction: nowhere, or with `hx` as one leaf."""
        if hx is None:
            return [Carry()] * (self.layers * self.directions)
        if not isinstance(hx, (Tensor, tuple, list)):
            raise TypeError(f"hx is a {type(hx).__name__}: expected a State, or (h_0, c_0)")
        parts = (hx,) if isinstance(hx, Tensor) else tuple(hx)
        self.check("hx", parts, weight)
        if not self.batched:
            parts = tuple(t.unsqueeze(1) for t in parts)
        # (layers * directions, B, H) to one leaf (B, 1, H) each
        leaves = zip(*(t.unsqueeze(2).unbind(0) for t in parts), strict=True)
        return [Carry.leaf(leaf) for leaf in leaves]


@dataclass(frozen=True)
class State:
    """Where a layer stands after some tokens; hand it back to go on from there.

    Unpacks as `torch.nn.LSTM`'s does, `h_n, c_n = state`, each (layers * directions, B, H).
    Behind that stand, for every layer, the blocks of the tree that wait for a partner: O(log T)
    states, without which nobody could go on exactly. Nothing in here is ever changed, so one
    state can be continued from many times.
    """

    # (h_n, c_n), whatever tensors a state of the cell has: (layers * directions, B, size) each
    final: Node
    # one for each layer; none where the layer is bidirectional, which cannot be continued
    pending: tuple[Pending, ...]
    # leaves behind every row: its tokens, and one more where it began with a plain (h, c)
    counts: tuple[int, ...]
    cell: str
    batched: bool = True

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.final if self.batched else tuple(t.squeeze(1) for t in self.final))

    def __len__(self) -> int:
        return len(self.final)

    def __getitem__(self, index: int) -> Tensor:
        if not isinstance(index, int):
            raise TypeError(
                f"state[{index!r}]: expected 0 for h_n, 1 for c_n; state.rows(...) selects rows"
            )
        return tuple(self)[index]

    def __repr__(self) -> str:
        low, high = min(self.counts, default=0), max(self.counts, default=0)
        seen = str(low) if low == high else f"{low}..{high}"
        shapes = ", ".join(str(tuple(t.shape)) for t in self)
        return f"State({self.cell}, {shapes}, leaves seen: {seen})"

    def check(self, shape: StateShape, weight: Tensor) -> None:
        """Raise unless a layer whose states are of that `shape` can go on from here."""
        if shape.directions == 2 or not self.pending:
            whose = "this layer is" if shape.directions == 2 else "the layer it came from was"
            raise ValueError(
                f"hx={self!r}: cannot be continued, {whose} bidirectional, and the reverse "
                "direction of a sequence begins at its end; a plain (h_0, c_0) is accepted"
            )
        if self.cell != shape.cell:
            raise ValueError(f"hx={self!r}: a state of cell {self.cell!r}, expected {shape.cell!r}")
        if self.batched != shape.batched:
            kinds = ("of one unbatched sequence", "of a batch")
            raise ValueError(
                f"hx={self!r}: a state {kinds[self.batched]}, expected one {kinds[shape.batched]}"
            )
        shape.check("hx", tuple(self), weight)

    def detach(self) -> "State":
        """The same state without its history: the idiom for truncated backpropagation."""
        return self.map(Tensor.detach)

    def to(self, *args: Any, **kwargs: Any) -> "State":
        """The same state on another device, or of another type; arguments as `Tensor.to`."""
        return self.map(lambda t: t.to(*args, **kwargs))

    def map(self, function: Callable[[Tensor], Tensor]) -> "State":
        """The state with `function` applied to each of its tensors."""
        tensors, context = _flatten(self)
        return _unflatten([function(t) for t in tensors], context)

    def rows(self, index: Tensor | Sequence[int] | slice) -> "State":
        """The state of some rows of the batch, in that order; a row may be taken twice.

        `index` selects as it does in `tensor[index]`: numbers, booleans or a slice.
        """
        if not self.batched:
            raise ValueError(f"rows({index}): this state belongs to one unbatched sequence")
        here = torch.arange(len(self.counts))
        key = index if isinstance(index, slice) else torch.as_tensor(index, device="cpu")
        chosen = here[key]
        if chosen.dim() != 1:
            raise ValueError(f"rows({index}): expected several rows, a slice, list or 1-d tensor")
        counts = tuple(self.counts[row] for row in chosen.tolist())
        used = levels_in_use(counts)
        device_rows = chosen.to(self.final[0].device)

        def select(level: Node | None) -> Node | None:
            return None if level is None else tuple(t.index_select(0, device_rows) for t in level)

        def shrink(levels: tuple[Node | None, ...]) -> tuple[Node | None, ...]:
            # levels that only the other rows used are dropped
            kept = zip(levels[: len(used)], used, strict=True)
            return tuple(select(level) if keep else None for level, keep in kept)

        return replace(
            self,
            final=tuple(t.index_select(1, device_rows) for t in self.final),
            pending=tuple(Pending(shrink(p.blocks), shrink(p.folds)) for p in self.pending),
            counts=counts,
        )

    def save(self, path: str | Path) -> None:
        """Write the state to a safetensors file, in one move."""
        tensors, context = _flatten(self)
        named = {str(n): t.detach().contiguous().clone() for n, t in enumerate(tensors)}
        partial = Path(path).with_name(Path(path).name + ".partial")
        save_file(named, partial, metadata={FORMAT: json.dumps(context)})
        partial.replace(path)

    @staticmethod
    def load(path: str | Path, device: torch.device | str = "cpu") -> "State":
        """Read a state that `save` wrote. Nothing in the file is executed."""
        with safe_open(path, "pt", device=str(device)) as file:
            meta = file.metadata() or {}
            if FORMAT not in meta:
                raise ValueError(f"{path}: expected a saved state, format {FORMAT!r}")
            parts, layers, counts, cell, batched = json.loads(meta[FORMAT])
            context = (parts, layers, tuple(counts), cell, batched)
            expected = parts * (1 + 2 * layers * sum(levels_in_use(counts)))
            if len(file.keys()) != expected:
                raise ValueError(f"{path}: holds {len(file.keys())} tensors, expected {expected}")
            return _unflatten([file.get_tensor(str(n)) for n in range(expected)], context)


def join(states: Sequence[State], order: Sequence[int]) -> State:
    """One state with the rows of several, all of them in turn and then put into `order`."""
    sizes = [len(state.counts) for state in states]

    def concat(parts: Sequence[Node | None]) -> Node | None:
        known = next((part for part in parts if part is not None), None)
        if known is None:
            return None
        # rows without a block at this level never look at it: zeros
        zeros = [tuple(t.new_zeros(n, *t.shape[1:]) for t in known) for n in sizes]
        filled = [zero if part is None else part for part, zero in zip(parts, zeros, strict=True)]
        return tuple(torch.cat(tensors) for tensors in zip(*filled, strict=True))

    def levels(columns: Iterable[tuple[Node | None, ...]]) -> tuple[Node | None, ...]:
        return tuple(concat(parts) for parts in zip_longest(*columns))

    whole = replace(
        states[0],
        final=tuple(torch.cat(ts, 1) for ts in zip(*(s.final for s in states), strict=True)),
        pending=tuple(
            Pending(levels(p.blocks for p in layer), levels(p.folds for p in layer))
            for layer in zip(*(s.pending for s in states), strict=True)
        ),
        counts=tuple(count for state in states for count in state.counts),
    )
    return whole.rows(order)


# What a state is besides its tensors: tensors in a node, layers, counts, cell, batched.
Context = tuple[int, int, tuple[int, ...], str, bool]


def _flatten(state: State) -> tuple[list[Tensor], Context]:
    """All tensors in a fixed order. Which levels they belong to follows from the counts."""
    tensors = list(state.final)
    for levels in (levels for pending in state.pending for levels in pending):
        for level in levels:
            tensors.extend(level or ())
    context = (len(state.final), len(state.pending), state.counts, state.cell, state.batched)
    return tensors, context


def _unflatten(tensors: Iterable[Tensor], context: Context) -> State:
    parts, layers, counts, cell, batched = context
    rest = iter(tensors)
    used = levels_in_use(counts)

    def node() -> Node:
        return tuple(islice(rest, parts))

    def levels() -> tuple[Node | None, ...]:
        return tuple(node() if use else None for use in used)

    final = node()
    pending = tuple(Pending(levels(), levels()) for _ in range(layers))
    return State(final, pending, counts, cell, batched)


pytree.register_pytree_node(State, _flatten, _unflatten, serialized_type_name="prlstm.State")
