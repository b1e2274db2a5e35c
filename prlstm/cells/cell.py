"""What a cell is: the two functions that a tree needs, and who provides them by name."""

from typing import Protocol, TypedDict, Unpack

import torch
from torch import Tensor, nn

from prlstm.cells.gru import GRUCell
from prlstm.cells.lstm import LSTMCell
from prlstm.cells.relu import ReLUCell
from prlstm.tree import Node


class Cell(Protocol):
    """A module that makes states of tokens, and one state of two neighbouring ones.

    A state is a tuple of tensors; its first one is h, what the layer puts out. Both functions
    work on the last dimension alone: all dimensions before it are independent states.

    A cell of your own is an `nn.Module` with these three names, whose class is called with
    `(input_size, hidden_size, *, refine, bias, device, dtype)`. `examples/own_cell.py` is one.
    """

    # sizes of the last dimension of a state's tensors, that of h first
    state_sizes: tuple[int, ...]

    def leaf(self, x: Tensor, /) -> Node:
        """The state of one token: `x` (..., input_size) to tensors (..., state_sizes[i])."""
        ...

    def merge(self, left: Node, right: Node, /) -> Node:
        """One state of two neighbours. Need not be associative."""
        ...


class CellOptions(TypedDict):
    """What a cell is told by name when it is built."""

    refine: int
    bias: bool
    device: torch.device | str | None
    dtype: torch.dtype | None


class CellFactory(Protocol):
    """How the layer builds a cell: a cell class with this constructor, for instance."""

    def __call__(
        self, input_size: int, hidden_size: int, /, **options: Unpack[CellOptions]
    ) -> nn.Module:
        """A new cell, its weights drawn."""
        ...


CELLS: dict[str, CellFactory] = {"lstm": LSTMCell, "relu": ReLUCell, "gru": GRUCell}


def build_cell(
    cell: str | CellFactory, input_size: int, hidden_size: int, **options: Unpack[CellOptions]
) -> nn.Module:
    """A new cell of that name or class, checked to be what `Cell` describes."""
    if isinstance(cell, str) and cell in CELLS:
        build = CELLS[cell]
    elif isinstance(cell, (str, nn.Module)) or not callable(cell):
        names = ", ".join(map(repr, CELLS))
        raise ValueError(f"cell={cell!r}: expected one of {names}, or a cell class")
    else:
        build = cell
    try:
        made = build(input_size, hidden_size, **options)
    except TypeError as refused:
        raise TypeError(
            f"cell={cell!r}: expected to be built by "
            f"(input_size, hidden_size, *, refine, bias, device, dtype), but {refused}"
        ) from refused
    _check_cell(made, hidden_size)
    return made


def _check_cell(cell: object, hidden_size: int) -> None:
    """Raise unless `cell` is what `Cell` describes, for states whose h has `hidden_size`."""
    name = type(cell).__name__
    if not isinstance(cell, nn.Module):
        raise TypeError(f"cell {name}: expected an nn.Module")
    for function in ("leaf", "merge"):
        if not callable(getattr(cell, function, None)):
            raise TypeError(f"cell {name}: expected a function {function!r}, see prlstm.Cell")
    sizes = getattr(cell, "state_sizes", None)
    if not isinstance(sizes, tuple) or sizes[:1] != (hidden_size,):
        raise ValueError(
            f"cell {name}: state_sizes={sizes}, expected a tuple that begins with "
            f"hidden_size={hidden_size}, the size of h"
        )
    if hasattr(cell, "reverse"):
        raise ValueError(f"cell {name}: the name 'reverse' is kept for the other direction")
