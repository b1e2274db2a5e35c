"""A cell of your own: two functions, leaf and merge, and the layer does the rest.

This one keeps, feature by feature, a learned mix of its two neighbours: no tanh, no cell state,
and a merge with a seventh of the LSTM cell's weights.
"""

import torch
from torch import Tensor, nn

import prlstm
from prlstm.tree import Node


class MixCell(nn.Module):
    """h = g * left + (1 - g) * right with g = sigmoid(Linear([left, right]))."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        refine: int,
        bias: bool,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()
        if refine != 0:
            raise ValueError(f"refine={refine}: a mix has no refinement, pass refine=0")
        self.state_sizes = (hidden_size,)
        self.token = nn.Linear(input_size, hidden_size, bias, device, dtype)
        self.gate = nn.Linear(2 * hidden_size, hidden_size, bias, device, dtype)

    def leaf(self, x: Tensor) -> Node:
        """The state of one token."""
        return (self.token(x),)

    def merge(self, left: Node, right: Node) -> Node:
        """One state of two neighbours."""
        g = torch.sigmoid(self.gate(torch.cat((*left, *right), -1)))
        return (g * left[0] + (1 - g) * right[0],)


def main() -> None:
    """Everything the layer does, it does with this cell."""
    torch.manual_seed(0)
    layer = prlstm.PRLSTM(3, 16, cell=MixCell, refine=0, batch_first=True)
    x = torch.randn(2, 100, 3)
    out, state = layer(x)
    (h_n,) = state
    head, state = layer(x[:, :37])
    tail, state = layer(x[:, 37:], state)
    difference = (torch.cat([head, tail], 1) - out).abs().max()
    print(f"{layer}\nout {tuple(out.shape)}, h_n {tuple(h_n.shape)}")
    print(f"in two pieces: differs by {difference:.0e}")
    assert difference < 1e-5


if __name__ == "__main__":
    main()
