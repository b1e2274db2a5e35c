"""Learn parity on words of up to 40 bits, and be right at 500: a training loop of one's own.

Train on mixed lengths: short words teach what long ones need. Any other task goes the same way.
"""

import torch
from torch import nn

import prlstm
from prlstm import tasks

HIDDEN, STEPS, BATCH, LONGEST = 64, 600, 64, 40


class Model(nn.Module):
    """A layer over the tape, and a linear map of its states where answers are asked for."""

    def __init__(self, task: tasks.Task) -> None:
        super().__init__()
        self.task = task
        self.layer = prlstm.PRLSTM(tasks.tape_size(task), HIDDEN, batch_first=True)
        self.read_out = nn.Linear(HIDDEN, task.output_size)

    def forward(self, batch: tasks.Batch) -> torch.Tensor:
        """Logits (B, O, classes)."""
        tape = tasks.tape(self.task, batch.input, batch.lengths)
        states, _ = self.layer(tape.one_hot())
        logits: torch.Tensor = self.read_out(tape.read(states))
        return logits


def main() -> float:
    """Train, then test at lengths never seen; returns the accuracy at 500."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    task = tasks.get("parity_check")
    model = Model(task)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(STEPS):
        length = int(torch.randint(1, LONGEST + 1, (), generator=generator))
        batch = task.sample(BATCH, length, generator=generator)
        loss = tasks.loss(model(batch), batch.target, batch.loss_mask)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if (step + 1) % 100 == 0:
            print(f"step {step + 1:4}  loss {loss.item():.4f}")
    print(f"guessing scores {task.floors.best:.3f}")
    accuracy = 0.0
    for length in (10, 40, 100, 500):
        batch = task.sample(256, length, generator=generator)
        with torch.no_grad():
            accuracy = tasks.accuracy(model(batch), batch.target, batch.mask).item()
        print(f"length {length:4}  accuracy {accuracy:.3f}")
    return accuracy


if __name__ == "__main__":
    main()
