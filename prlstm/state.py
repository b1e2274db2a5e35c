"""The state of a layer between two calls: a value, not a handle."""

# annotations inside functions must stay text: torch.compile traces these functions
from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.utils import _pytree as pytree

from prlstm.lengths import is_integer
from prlstm.tree import Node
from prlstm.tree.rows import Pending, levels_in_use

# The one key of a saved state's metadata. (More than one would be written in any order.)
FORMAT = "prlstm.State/1"


@dataclass(frozen=True, eq=False)
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
    # leaves behind the rows: one number where all agree, else one for each
    seen: int | tuple[int, ...]
    cell: str
    batched: bool = True

    @property
    def counts(self) -> tuple[int, ...]:
        """Leaves behind every row: its tokens, and one more where it began with a plain (h, c)."""
        if isinstance(self.seen, tuple):
            return self.seen
        return (self.seen,) * self.final[0].shape[-2]

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.final if self.batched else tuple(t.squeeze(-2) for t in self.final))

    def __len__(self) -> int:
        return len(self.final)

    def __getitem__(self, index: int) -> Tensor:
        if not isinstance(index, int):
            raise TypeError(
                f"state[{index!r}]: expected 0 for h_n, 1 for c_n; state.rows(...) selects rows"
            )
        return tuple(self)[index]

    def __repr__(self) -> str:
        counts = [self.seen] if isinstance(self.seen, int) else self.seen
        low, high = min(counts, default=0), max(counts, default=0)
        seen = str(low) if low == high else f"{low}..{high}"
        shapes = ", ".join(str(tuple(t.shape)) for t in self)
        return f"State({self.cell}, {shapes}, leaves seen: {seen})"

    def detach(self) -> State:
        """The same state without its history: the idiom for truncated backpropagation."""
        return self._map(Tensor.detach)

    def to(self, *args: Any, **kwargs: Any) -> State:
        """The same state on another device, or of another type; arguments as `Tensor.to`."""
        return self._map(lambda t: t.to(*args, **kwargs))

    def rows(self, index: Tensor | Sequence[int] | slice) -> State:
        """The state of some rows of the batch, in that order; a row may be taken twice.

        `index` selects as it does in `tensor[index]`: numbers, booleans or a slice.
        """
        if not self.batched:
            raise ValueError(f"rows({index}): this state belongs to one unbatched sequence")
        counts = self.counts
        chosen = row_numbers(index, len(counts))
        seen = agreed(tuple(counts[row] for row in chosen))
        used = levels_in_use(seen)
        rows = torch.tensor(chosen, dtype=torch.long, device=self.final[0].device)

        def select(level: Node | None) -> Node | None:
            return None if level is None else tuple(t.index_select(0, rows) for t in level)

        def shrink(levels: tuple[Node | None, ...]) -> tuple[Node | None, ...]:
            # levels that only the other rows used are dropped
            kept = zip(levels, used, strict=False)
            return tuple(select(level) if keep else None for level, keep in kept)

        return replace(
            self,
            final=tuple(t.index_select(1, rows) for t in self.final),
            pending=tuple(Pending(shrink(p.blocks), shrink(p.folds)) for p in self.pending),
            seen=seen,
        )

    def save(self, path: str | Path) -> None:
        """Write the state to a safetensors file, in one move."""
        tensors, context = _flatten(self)
        named = {str(n): t.detach().contiguous().clone() for n, t in enumerate(tensors)}
        if not Path(path).parent.is_dir():
            raise FileNotFoundError(f"{path}: the folder does not exist")
        if Path(path).is_dir():
            raise IsADirectoryError(f"{path}: is a folder, expected the name of a file")
        partial = Path(path).with_name(Path(path).name + ".partial")
        save_file(named, partial, metadata={FORMAT: json.dumps(context)})
        partial.replace(path)

    @staticmethod
    def load(path: str | Path, device: torch.device | str = "cpu") -> State:
        """Read a state that `save` wrote. Nothing in the file is executed."""
        try:
            with safe_open(path, "pt", device=str(device)) as file:
                meta = file.metadata() or {}
                tensors = [file.get_tensor(name) for name in sorted(file.keys(), key=_by_number)]
        except SafetensorError as damage:
            raise ValueError(f"{path}: not a safetensors file, {damage}") from damage
        if FORMAT not in meta:
            raise ValueError(f"{path}: expected a saved state, format {FORMAT!r}")
        try:
            parts, layers, seen, cell, batched = json.loads(meta[FORMAT])
            seen = tuple(map(int, seen)) if isinstance(seen, list) else int(seen)
            state = _unflatten(tensors, (int(parts), int(layers), seen, cell, bool(batched)))
        except (ValueError, TypeError) as damage:
            raise ValueError(f"{path}: a damaged state, {damage}") from damage
        if len(_flatten(state)[0]) != len(tensors) or not _is_consistent(state):
            raise ValueError(f"{path}: a damaged state, its tensors do not fit together")
        return state

    def _map(self, function: Callable[[Tensor], Tensor]) -> State:
        tensors, context = _flatten(self)
        return _unflatten([function(t) for t in tensors], context)


def _is_consistent(state: State) -> bool:
    """Whether what a file holds could have been a layer's state."""
    if not isinstance(state.cell, str) or not all(t.dim() == 3 for t in state.final):
        return False
    layers, rows, _ = state.final[0].shape
    sizes = [t.shape[-1] for t in state.final]
    levels = (level for pending in state.pending for half in pending for level in half)
    nodes = [[tuple(t.shape) for t in level] for level in levels if level is not None]
    return (
        len(state.counts) == rows
        and min(state.counts, default=0) >= 0
        and len(state.pending) in (0, layers)
        and (state.batched or rows == 1)
        and [tuple(t.shape) for t in state.final] == [(layers, rows, size) for size in sizes]
        and all(node == [(rows, 1, size) for size in sizes] for node in nodes)
    )


def _by_number(name: str) -> tuple[int, str]:
    """The order of the tensors in a file: 2 comes before 10."""
    return len(name), name


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
            Pending(levels([p.blocks for p in layer]), levels([p.folds for p in layer]))
            for layer in zip(*(s.pending for s in states), strict=True)
        ),
        seen=tuple(count for state in states for count in state.counts),
    )
    return whole.rows(order)


def agreed(counts: tuple[int, ...]) -> int | tuple[int, ...]:
    """One number where all counts agree."""
    first = counts[0] if counts else 0
    return first if all(count == first for count in counts) else counts


def row_numbers(index: object, rows: int) -> list[int]:
    """The rows that `index` selects of so many, as numbers from 0."""
    if isinstance(index, slice):
        return list(range(rows))[index]
    given = index.tolist() if hasattr(index, "tolist") else index
    if isinstance(given, Sequence) and given and all(isinstance(keep, bool) for keep in given):
        if len(given) == rows:
            return [row for row, keep in enumerate(given) if keep]
    elif isinstance(given, Sequence) and all(
        is_integer(row) and -rows <= row < rows for row in given
    ):
        return [operator.index(row) % rows for row in given]
    raise ValueError(
        f"rows({index}): expected a slice, or a list or 1-d tensor of row numbers "
        f"or booleans, for a batch of {rows}"
    )


# What a state is besides its tensors: tensors in a node, layers, seen, cell, batched.
Context = tuple[int, int, int | tuple[int, ...], str, bool]


def _flatten(state: State) -> tuple[list[Tensor], Context]:
    """All tensors in a fixed order. Which levels they belong to follows from the counts."""
    tensors = list(state.final)
    for pending in state.pending:
        for levels in pending:
            for level in levels:
                tensors.extend(level or ())
    return tensors, (
        len(state.final),
        len(state.pending),
        state.seen,
        state.cell,
        state.batched,
    )


def _unflatten(tensors: Iterable[Tensor], context: Context) -> State:
    parts, layers, seen, cell, batched = context
    rest = iter(tensors)
    used = levels_in_use(seen)

    def node() -> Node:
        return tuple(islice(rest, parts))

    def levels() -> tuple[Node | None, ...]:
        return tuple(node() if use else None for use in used)

    final = node()
    pending = tuple(Pending(levels(), levels()) for _ in range(layers))
    return State(final, pending, seen, cell, batched)


pytree.register_pytree_node(State, _flatten, _unflatten, serialized_type_name="prlstm.State")
