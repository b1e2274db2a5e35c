"""The PR family: leaves, the tree, and a read-out of the prefixes that answer."""

from dataclasses import dataclass
from typing import cast

from torch import Tensor, nn

from prlstm.cells import Cell
from prlstm.layer import PRLSTM
from prlstm.models.options import TapeOptions, option
from prlstm.models.reading import Reading, ReluReadout
from prlstm.tree import tree_reduce_rows


@dataclass(frozen=True, kw_only=True)
class PROptions(TapeOptions):
    """PR-LSTM and PR-RNN."""

    hidden_size: int = option(
        256, "Features of a state; 137 has about the weights of an LSTM of 256."
    )
    refine: int = option(1, "Refinements of a state after each merge.", least=0)


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
        if reading.answers is not None and reading.answers.shape[1] == 1:
            # one state of each row, at its own end: no other prefix is needed
            cell = cast(Cell, self.layer.layers[0])
            h = tree_reduce_rows(cell.merge, cell.leaf(x), reading.answers[:, 0] + 1)[0][:, None]
        else:
            h = reading.take(self.layer(x, output=(reading.start, reading.stop))[0])
        logits: Tensor = self.readout(h)
        return logits
