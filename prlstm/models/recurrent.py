"""RNN, LSTM and GRU: one state after the other."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from prlstm.models.options import TapeOptions, option
from prlstm.models.reading import Reading, ReluReadout
from prlstm.models.steps import GRUStep, LSTMStep, ReluStep, State


@dataclass(frozen=True, kw_only=True)
class RecurrentOptions(TapeOptions):
    """RNN, LSTM and GRU."""

    hidden_size: int = option(256, "Features of a state.")


class RecurrentNetwork(nn.Module):
    """A cell over the tape, left to right.

    While `fused` is set, a cell that the device's library knows (cuDNN's RNN and LSTM) runs there.
    """

    fused = True

    def __init__(self, cell: ReluStep | LSTMStep | GRUStep, output_size: int) -> None:
        super().__init__()
        self.cell = cell
        self.readout = ReluReadout(cell.hidden_size, output_size)

    def states(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """The h of every cell (B, T, H), and the last state: from the first one, or going on."""
        state = self.cell.first(x) if state is None else state
        if self.fused and not isinstance(self.cell, GRUStep):
            return self.cell.all_steps(x, state)
        outputs = []
        for drive in self.cell.drive(x).unbind(1):
            state = self.cell.step(drive, state)
            outputs.append(state[0])
        return torch.stack(outputs, 1), state

    def forward(self, x: Tensor, reading: Reading, target: Tensor | None = None) -> Tensor:
        """Shapes: `x` (B, T, D), logits (B, O, C)."""
        # what comes behind the last answer is not looked at
        states, _ = self.states(x[:, : reading.stop])
        logits: Tensor = self.readout(reading.of_whole(states))
        return logits

    def read_on(self, x: Tensor, state: State | None) -> State:
        """The state after more cells."""
        return self.states(x, state)[1]

    def answer_on(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits at more cells, and the state after them."""
        states, state = self.states(x, state)
        return self.readout(states), state
