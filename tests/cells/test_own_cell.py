"""A cell of the user's own: a state of three tensors of different sizes, without any weights."""

from functools import partial

import torch
from torch import Tensor, nn

from prlstm import PRLSTM
from prlstm.tree import Node, tree_scan_naive
from tests.compare import assert_same


class Strange(nn.Module):
    """h is as wide as asked; beside it stand an integer count and a matrix, flattened."""

    def __init__(
        self, input_size: int, hidden_size: int, *, scale: float = 0.5, **_: object
    ) -> None:
        super().__init__()
        self.hidden_size, self.scale = hidden_size, scale
        self.state_sizes = (hidden_size, 1, 2 * hidden_size)

    def leaf(self, x: Tensor) -> Node:
        h = x.mean(-1, keepdim=True).expand(*x.shape[:-1], self.hidden_size)
        return h, torch.ones_like(h[..., :1], dtype=torch.int64), torch.cat((h, -h), -1)

    def merge(self, left: Node, right: Node) -> Node:
        h = torch.tanh(left[0] - self.scale * right[0] * left[1])
        return h, left[1] + right[1], left[2] * right[2] + 1


def test_own_cell_in_every_form() -> None:
    layer = PRLSTM(3, 4, 2, batch_first=True, cell=Strange)
    assert layer.cell == "Strange"
    x = torch.randn(3, 21, 3, dtype=torch.float64)
    out, state = layer(x)
    h_n, count, _ = state
    assert h_n.shape == (2, 3, 4)
    assert (count == 21).all()
    head, middle = layer(x[:, :8])
    tail, _ = layer(x[:, 8:], middle)
    assert_same("streamed", torch.cat([head, tail], 1), out)
    ragged, state = layer(x, lengths=[21, 5, 13])
    assert state[1].flatten().tolist() == [21, 5, 13] * 2
    assert_same("ragged", ragged[1, :5], out[1, :5])
    more, _ = layer(x[:, :4], state)
    alone, _ = layer(torch.cat([x[1, :5], x[1, :4]]))
    assert_same("continued", more[1], alone[5:])


def test_own_cell_is_the_definition() -> None:
    layer = PRLSTM(3, 4, batch_first=True, cell=partial(Strange, scale=0.25))
    x = torch.randn(2, 13, 3, dtype=torch.float64)
    (sweep,) = layer.trace(x)
    cell = Strange(3, 4, scale=0.25)
    want = tree_scan_naive(cell.merge, [cell.leaf(x[:, t]) for t in range(13)])
    for index in range(3):
        expected = torch.stack([state[index] for state in want], 1)
        torch.testing.assert_close(sweep.read[index], expected)
