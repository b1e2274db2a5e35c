"""One step of a recurrent network: a ReLU, an LSTM or a GRU cell.

A cell takes what comes from the tape for all cells of it at once (`drive`), and then goes on one
cell at a time (`step`), where it may also read a memory. Shapes: tape (B, T, D), drive (B, T, G),
read (B, M), h (B, H).
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prlstm.cells.gru import GRUBlock
from prlstm.cells.initial import reset_linear

State = tuple[Tensor, ...]


class ReluStep(nn.Module):
    """h' = relu(Linear([x, read]) + Linear(h)), with a bias in each."""

    def __init__(self, input_size: int, hidden_size: int, read_size: int = 0) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.weight_input = nn.Parameter(torch.empty(hidden_size, input_size + read_size))
        self.bias_input = nn.Parameter(torch.empty(hidden_size))
        self.weight_state = nn.Parameter(torch.empty(hidden_size, hidden_size))
        self.bias_state = nn.Parameter(torch.empty(hidden_size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        reset_linear(self.weight_input, self.bias_input)
        reset_linear(self.weight_state, self.bias_state)

    def drive(self, x: Tensor) -> Tensor:
        """What comes from the tape."""
        return F.linear(x, self.weight_input[:, : self.input_size], self.bias_input)

    def step(self, drive: Tensor, state: State, read: Tensor | None = None) -> State:
        """The next state."""
        if read is not None:
            drive = drive + F.linear(read, self.weight_input[:, self.input_size :])
        return (torch.relu(drive + F.linear(state[0], self.weight_state, self.bias_state)),)

    def first(self, x: Tensor) -> State:
        """Zeros."""
        return (x.new_zeros(x.shape[0], self.hidden_size),)

    def all_steps(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """The h of every cell (B, T, H) and the last state, by the device's library for it."""
        weights = (self.weight_input, self.weight_state, self.bias_input, self.bias_state)
        h, last = torch.rnn_relu(
            x,
            state[0][None],
            _adjacent(weights),
            True,
            1,
            0.0,
            torch.is_grad_enabled(),
            False,
            True,
        )
        return h, (last[0],)


class LSTMStep(nn.Module):
    """An LSTM cell whose forget gate has a constant one added. Rows of the weights: i, f, g, o."""

    def __init__(self, input_size: int, hidden_size: int, read_size: int = 0) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.weight_input = nn.Parameter(torch.empty(4 * hidden_size, input_size + read_size))
        self.weight_state = nn.Parameter(torch.empty(4 * hidden_size, hidden_size))
        self.bias = nn.Parameter(torch.empty(4 * hidden_size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights anew: one affine map of [x, read, h]."""
        whole = torch.empty_like(torch.cat([self.weight_input, self.weight_state], 1))
        reset_linear(whole, self.bias)
        with torch.no_grad():
            self.weight_input.copy_(whole[:, : self.weight_input.shape[1]])
            self.weight_state.copy_(whole[:, self.weight_input.shape[1] :])

    def drive(self, x: Tensor) -> Tensor:
        """What comes from the tape."""
        return F.linear(x, self.weight_input[:, : self.input_size], self._bias())

    def step(self, drive: Tensor, state: State, read: Tensor | None = None) -> State:
        """The next state."""
        h, c = state
        if read is not None:
            drive = drive + F.linear(read, self.weight_input[:, self.input_size :])
        i, f, g, o = (drive + F.linear(h, self.weight_state)).chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c

    def first(self, x: Tensor) -> State:
        """Zeros."""
        zeros = x.new_zeros(x.shape[0], self.hidden_size)
        return zeros, zeros

    def all_steps(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """The h of every cell (B, T, H) and the last state, by the device's library for it."""
        bias = self._bias()
        weights = (self.weight_input, self.weight_state, bias, torch.zeros_like(bias))
        before = [one[None] for one in state]
        h, h_n, c_n = torch.lstm(
            x, before, _adjacent(weights), True, 1, 0.0, torch.is_grad_enabled(), False, True
        )
        return h, (h_n[0], c_n[0])

    def _bias(self) -> Tensor:
        one = torch.ones_like(self.bias[: self.hidden_size])
        return self.bias + F.pad(one, (self.hidden_size, 2 * self.hidden_size))


class GRUStep(nn.Module):
    """A GRU cell that resets the state before its product, so that no library has it."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.block = GRUBlock(hidden_size, input_size=input_size)

    def drive(self, x: Tensor) -> Tensor:
        """What comes from the tape."""
        return self.block.from_left(x)

    def step(self, drive: Tensor, state: State) -> State:
        """The next state."""
        return (self.block.update(drive, state[0]),)

    def first(self, x: Tensor) -> State:
        """Zeros."""
        return (x.new_zeros(x.shape[0], self.hidden_size),)


def _adjacent(weights: tuple[Tensor, ...]) -> list[Tensor]:
    """The same weights, one behind the other in memory, as cuDNN asks."""
    flat = torch.cat([weight.flatten() for weight in weights])
    parts = torch.split_with_sizes(flat, [weight.numel() for weight in weights])
    return [part.view_as(weight) for part, weight in zip(parts, weights, strict=True)]
