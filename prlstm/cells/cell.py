"""What a cell is: the two functions that a tree needs, and who provides them by name."""

from typing import Protocol

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
    A cell of your own is an `nn.Module` with these three names, `examples/own_cell.py` is one.
    """

    # sizes of the last dimension of a state's tensors, that of h first
    state_sizes: tuple[int, ...]

    def leaf(self, x: Tensor, /) -> Node:
        """The state of one token: `x` (..., input_size) to tensors (..., state_sizes[i])."""
        ...

    def merge(self, left: Node, right: Node, /) -> Node:
        """One state of two neighbours. Need not be associative."""
        ...


class CellFactory(Protocol):
    """How the layer builds a cell: a cell class with this constructor, for instance."""

    def __call__(
        self,
        input_size: int,
        hidden_size: int,
        /,
        *,
        refine: int,
        bias: bool,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> nn.Module:
        """A new cell, its weights drawn."""
        ...


CELLS: dict[str, CellFactory] = {"lstm": LSTMCell, "relu": ReLUCell, "gru": GRUCell}


def factory(cell: str | CellFactory) -> CellFactory:
    """The cell class of that name; a class of the caller's own is returned as it is."""
    if callable(cell):
        return cell
    if cell not in CELLS:
        names = ", ".join(map(repr, CELLS))
        raise ValueError(f"cell={cell!r}: expected one of {names}, or a cell class")
    return CELLS[cell]
