"""Learn parity on strings of up to 20 bits, and be right at 500.

Train on mixed lengths: short strings teach what long ones need.
"""

import torch
from torch import Tensor, nn

import prlstm

HIDDEN, STEPS, BATCH, LONGEST = 32, 600, 64, 20


class Parity(nn.Module):
    """A layer over one-hot bits, and a linear map of its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = prlstm.PRLSTM(2, HIDDEN, batch_first=True)
        self.read_out = nn.Linear(HIDDEN, 2)

    def forward(self, bits: Tensor) -> Tensor:
        """Bits (B, T) to logits (B, 2)."""
        last, _ = self.layer(nn.functional.one_hot(bits, 2).float(), output="last")
        logits: Tensor = self.read_out(last)
        return logits


def accuracy(model: nn.Module, length: int) -> float:
    """On 256 random strings."""
    bits = torch.randint(2, (256, length))
    with torch.no_grad():
        right = model(bits).argmax(-1) == bits.sum(1) % 2
    return right.float().mean().item()


def main() -> float:
    """Train, then test at lengths never seen; returns the accuracy at 500."""
    torch.manual_seed(0)
    model = Parity()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(STEPS):
        bits = torch.randint(2, (BATCH, int(torch.randint(1, LONGEST + 1, ()))))
        loss = nn.functional.cross_entropy(model(bits), bits.sum(1) % 2)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if (step + 1) % 100 == 0:
            print(f"step {step + 1:4}  loss {loss.item():.4f}")
    for length in (10, 20, 100, 500):
        print(f"length {length:4}  accuracy {accuracy(model, length):.3f}")
    return accuracy(model, 500)


if __name__ == "__main__":
    main()
