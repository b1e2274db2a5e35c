"""The PR family: leaves, the tree, and a read-out of the prefixes that answer."""

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from prlstm.cells import Cell
from prlstm.layer import PRLSTM
from prlstm.models.options import TapeOptions, option
from prlstm.models.reading import Reading, ReluReadout
from prlstm.state import State
from prlstm.tree import tree_reduce_rows, tree_reduce_tokens


@dataclass(frozen=True, kw_only=True)
class PROptions(TapeOptions):
    """PR-LSTM and PR-RNN."""

    hidden_size: int = option(
        256, "Features of a state; 137 has about the weights of an LSTM of 256."
    )
    refine: int = option(1, "Refinements of a state after each merge.", least=0, below=1000)


@dataclass(frozen=True, kw_only=True)
class PRGRUOptions(TapeOptions):
    """PR-GRU, which has no refinement."""

    hidden_size: int = option(256, "Features of a state.")


class PRNetwork(nn.Module):
    """The states after every cell that is read, for the merges that these need."""

    def __init__(
        self, input_size: int, output_size: int, hidden_size: int, cell: str, refine: int
    ) -> None:
        super().__init__()
        self.layer = PRLSTM(input_size, hidden_size, batch_first=True, cell=cell, refine=refine)
        self.readout = ReluReadout(hidden_size, output_size)

    def forward(self, x: Tensor, reading: Reading, target: Tensor | None = None) -> Tensor:
        """Shapes: `x` (B, T, D), logits (B, O, C)."""
        cell, ends = cast(Cell, self.layer.layers[0]), reading.only_ends(x)
        if ends is not None and not torch.is_grad_enabled():
            # there are few different cells, and so there are few different blocks
            alphabet = cell.leaf(torch.eye(x.shape[-1], dtype=x.dtype, device=x.device))
            h = tree_reduce_tokens(cell.merge, alphabet, x.argmax(-1), ends)[0][:, None]
        elif ends is not None and reading.answers is not None:
            # one state of each row, at its own end: no other prefix is needed
            h = tree_reduce_rows(cell.merge, cell.leaf(x), ends)[0][:, None]
        else:
            h = reading.take(self.layer(x, output=(reading.start, reading.stop))[0])
        logits: Tensor = self.readout(h)
        return logits

    def read_on(self, x: Tensor, state: State | None) -> State:
        """The state after more cells."""
        after: State = self.layer(x, state, output="last")[1]
        return after

    def answer_on(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits at more cells, and the state after them."""
        states, state = self.layer(x, state)
        return self.readout(states), state
