"""Stack-RNN and Tape-RNN: a recurrent network with a differentiable memory.

A memory is (B, slots, size); slot 0 is what is read: the top of the stack, the head of the tape.
Memories move by shifts of their slots.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prlstm.models.options import TapeOptions, option
from prlstm.models.reading import Linear, Reading, ReluReadout
from prlstm.models.steps import LSTMStep, ReluStep

STACK_SIZE, MEMORY_SIZE = 128, 256


@dataclass(frozen=True, kw_only=True)
class StackOptions(TapeOptions):
    """Stack-RNN."""

    hidden_size: int = option(256, "Features of a state.")
    controller: str = option("rnn", "The recurrent cell.", among=("rnn", "lstm"))
    stack_cell_size: int = option(8, "Features of a slot of the stack.")
    stack_size: int | None = option(
        None, f"Slots of the stack; by default {STACK_SIZE}, or as many as the tape has cells."
    )


@dataclass(frozen=True, kw_only=True)
class TapeRNNOptions(TapeOptions):
    """Tape-RNN."""

    hidden_size: int = option(256, "Features of a state.")
    memory_cell_size: int = option(8, "Features of a slot of the memory.")
    memory_size: int | None = option(
        None, f"Slots of the memory; by default {MEMORY_SIZE}, or as many as the tape has cells."
    )
    mlp_sizes: tuple[int, ...] = option((64, 64), "Hidden layers of the map to what is written.")


class StackNetwork(nn.Module):
    """A stack of vectors that is pushed, popped and kept by shares.

    With the shares p of push, pop and no action, and v what is pushed:

        new[0] = p_push v + p_pop old[1] + p_keep old[0]
        new[i] = p_push old[i - 1] + p_pop old[i + 1] + p_keep old[i]
    """

    def __init__(
        self,
        input_size: int,
        output_size: int,
        hidden_size: int,
        controller: str,
        stack_cell_size: int,
        stack_size: int | None,
    ) -> None:
        super().__init__()
        self.stack_size, self.stack_cell_size = stack_size, stack_cell_size
        kind = LSTMStep if controller == "lstm" else ReluStep
        self.cell: ReluStep | LSTMStep = kind(input_size, hidden_size, stack_cell_size)
        self.push = Linear(hidden_size, stack_cell_size)
        self.act = Linear(hidden_size, 3)
        self.readout = ReluReadout(hidden_size, output_size)

    def states(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The h of every cell (B, T, H), and the stack at the end (B, slots, size)."""
        state, outputs = self.cell.first(x), []
        # after t steps at most t slots hold something: the others are left out
        stack = x.new_zeros(x.shape[0], 1, self.stack_cell_size)
        most = self.stack_size or max(STACK_SIZE, x.shape[1])
        for drive in self.cell.drive(x).unbind(1):
            state = self.cell.step(drive, state, stack[:, 0])
            outputs.append(state[0])
            stack = self._next(state[0], stack)[:, :most]
        return torch.stack(outputs, 1), F.pad(stack, (0, 0, 0, most - stack.shape[1]))

    def _next(self, h: Tensor, stack: Tensor) -> Tensor:
        """The stack after one step, one slot longer."""
        shares = torch.softmax(self.act(h), -1)[..., None, None]
        pushed = torch.cat([self.push(h)[:, None], stack], 1)
        popped = F.pad(stack[:, 1:], (0, 0, 0, 2))
        kept = F.pad(stack, (0, 0, 0, 1))
        return shares[:, 0] * pushed + shares[:, 1] * popped + shares[:, 2] * kept

    def forward(self, x: Tensor, reading: Reading, target: Tensor | None = None) -> Tensor:
        """Shapes: `x` (B, T, D), logits (B, O, C)."""
        states, _ = self.states(x[:, : reading.stop])
        logits: Tensor = self.readout(reading.of_whole(states))
        return logits


class TapeNetwork(nn.Module):
    """A ring of slots that is written at its head and turned by shares.

    Every step writes first. With the shares a of staying, turning left and right by one slot, and
    jumping left and right by as many slots as the word has tokens (n):

        new[j] = a0 w[j] + a1 w[j + 1] + a2 w[j - 1] + a3 w[j + n] + a4 w[j - n]

    with indices modulo the number of slots.
    """

    def __init__(
        self,
        input_size: int,
        output_size: int,
        hidden_size: int,
        memory_cell_size: int,
        memory_size: int | None,
        mlp_sizes: tuple[int, ...],
    ) -> None:
        super().__init__()
        self.memory_size, self.memory_cell_size = memory_size, memory_cell_size
        self.cell = ReluStep(input_size, hidden_size, memory_cell_size)
        sizes = [hidden_size, *mlp_sizes, memory_cell_size]
        self.write = nn.ModuleList(map(Linear, sizes[:-1], sizes[1:]))
        self.act = Linear(hidden_size, 5)
        self.readout = ReluReadout(hidden_size, output_size)

    def states(self, x: Tensor, reading: Reading) -> tuple[Tensor, Tensor]:
        """The h of every cell up to the last answer, and the memory then (B, slots, size)."""
        turns = self._turns(x, reading)
        state, outputs = self.cell.first(x), []
        memory = x.new_zeros(x.shape[0], turns.slots, self.memory_cell_size)
        for drive in self.cell.drive(x[:, : reading.stop]).unbind(1):
            state = self.cell.step(drive, state, memory[:, 0])
            outputs.append(state[0])
            memory = self._next(state[0], memory, turns)
        return torch.stack(outputs, 1), memory

    def _next(self, h: Tensor, memory: Tensor, turns: "Turns") -> Tensor:
        shares = torch.softmax(self.act(h), -1)[..., None, None]
        value = h
        for layer, linear in enumerate(self.write):
            value = linear(torch.relu(value) if layer else value)
        written = torch.cat([value[:, None], memory[:, 1:]], 1)
        new = shares[:, 0] * written
        for action in range(4):
            new = new + shares[:, 1 + action] * turns.turned(written, action)
        return new

    def _turns(self, x: Tensor, reading: Reading) -> "Turns":
        n = reading.input_lengths
        if self.memory_size is not None:
            return Turns(self.memory_size, self.memory_size, n)
        longest = max(MEMORY_SIZE, x.shape[1])
        if reading.lengths is None:
            return Turns(longest, longest, n)
        # a row has the ring that it has alone
        return Turns(longest, reading.lengths.clamp(min=MEMORY_SIZE), n)

    def forward(self, x: Tensor, reading: Reading, target: Tensor | None = None) -> Tensor:
        """Shapes: `x` (B, T, D), logits (B, O, C)."""
        states, _ = self.states(x, reading)
        logits: Tensor = self.readout(reading.of_whole(states))
        return logits


class Turns:
    """The four turns of a ring: by 1, -1, n, -n slots, for all rows alike or for each."""

    def __init__(self, slots: int, ring: int | Tensor, n: int | Tensor) -> None:
        self.slots = slots
        self.shifts = [1, -1, n, -n] if isinstance(n, int) and isinstance(ring, int) else []
        # slots behind a row's own ring are never read
        self.index = [] if self.shifts else _turned_places(slots, ring, n)

    def turned(self, memory: Tensor, action: int) -> Tensor:
        """The memory (B, slots, size) after one of the turns: new[j] = old[j + by]."""
        if self.shifts:
            return memory.roll(-self.shifts[action], 1)
        return memory.gather(1, self.index[action].expand_as(memory))


def _turned_places(slots: int, ring: int | Tensor, n: int | Tensor) -> list[Tensor]:
    """For each turn where every slot of every row comes from: (B, slots, 1)."""
    known = n if isinstance(n, Tensor) else ring
    place = torch.arange(slots, device=torch.as_tensor(known).device)[:, None]
    size, jump = (one[:, None, None] if isinstance(one, Tensor) else one for one in (ring, n))
    return [(place + by) % size for by in (1, -1, jump, -jump)]
