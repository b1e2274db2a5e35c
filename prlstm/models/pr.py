"""The PR family: leaves, the tree, and a read-out of the prefixes that answer."""

from dataclasses import dataclass
from typing import cast

from torch import Tensor, nn

from prlstm.cells import Cell
from prlstm.dispatch import Backend, Reader
from prlstm.layer import PRLSTM
from prlstm.models.options import TapeOptions, option
from prlstm.models.reading import Reading, ReluReadout
from prlstm.state import State
from prlstm.tree import Words


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

    # cells of the tape, not vectors: blocks of few different ones are looked up
    reads_ids = True

    def __init__(
        self, input_size: int, output_size: int, hidden_size: int, cell: str, refine: int
    ) -> None:
        super().__init__()
        self.layer = PRLSTM(input_size, hidden_size, batch_first=True, cell=cell, refine=refine)
        self.readout = ReluReadout(hidden_size, output_size)

    def forward(self, ids: Tensor, reading: Reading, target: Tensor | None = None) -> Tensor:
        """Shapes: `ids` (B, T), logits (B, O, C)."""
        layer = self.layer
        reader = Reader(cast(Cell, layer.layers[0]), layer.input_size, Backend(), rounded=True)
        words = Words(layer.input_size, ids.shape[1])
        if reading.letters is not None:
            known = reading.input_lengths
            words = Words(reading.letters, known if isinstance(known, int) else None)
        if reading.answers is not None and reading.answers.shape[1] == 1:
            # one state of each row, at its own end: no other prefix is needed
            ends = reading.answers[:, 0] + 1
            h = reader.reduce_ids(ids, words, ends)[0][:, None]
        else:
            read = ids[:, : reading.stop]
            h = reading.take(reader.prefixes_of_ids(read, words, reading.start))
        logits: Tensor = self.readout(h)
        return logits

    def read_on(self, x: Tensor, state: State | None) -> State:
        """The state after more cells, ids (B, T)."""
        after: State = self.layer(x, state, output="last")[1]
        return after

    def answer_on(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits at more cells, and the state after them."""
        states, state = self.layer(x, state)
        return self.readout(states), state
