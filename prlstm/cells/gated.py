"""The gated block: every learned block of PR-LSTM is this one, for n = 0, 1 or 2 incoming states.

With z the token (n = 0) or the incoming hidden states side by side,

    f_1..f_n, i, o = sigmoid(Linear(z))      u = tanh(Linear(z))
    c = i * u + sum_j f_j * c_j              h = o * tanh(c)

| n | block       | what it does                     | weight   |
|---|-------------|----------------------------------|----------|
| 0 | leaf        | a token becomes a state          | (3H, D)  |
| 1 | refinement  | a state is transformed once more | (4H, H)  |
| 2 | composition | two neighbours become one state  | (5H, 2H) |
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prlstm.cells.initial import reset_linear
from prlstm.cells.precision import wide

# i, o and u; the n forget gates come before them in the rows of the weight
GATES_BESIDE_FORGET = 3


def gated_block(
    z: Tensor, cells: Sequence[Tensor], weight: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The new `(h, c)` from the input `z` and the n incoming cell states.

    Shapes: `z` (..., K); each of `cells` (..., H); `weight` ((n + 3) H, K), its rows in the
    order f_1..f_n, i, o, u; `bias` ((n + 3) H,). Gates and c are float32 or wider whatever the
    product was computed in; h has the type of the weight.
    """
    hidden_size = weight.shape[0] // (len(cells) + GATES_BESIDE_FORGET)
    gates = wide(F.linear(z, weight, bias))
    *forget, i, o = torch.sigmoid(gates[..., :-hidden_size]).chunk(len(cells) + 2, -1)
    u = torch.tanh(gates[..., -hidden_size:])
    c = i * u
    for f, c_in in zip(forget, cells, strict=True):
        c = torch.addcmul(c, f, c_in)
    h = (o * torch.tanh(c)).to(weight.dtype)
    return h, c


class GatedBlock(nn.Module):
    """The gated block with its weights, for `states` incoming states."""

    def __init__(
        self,
        states: int,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.states, self.input_size, self.hidden_size = states, input_size, hidden_size
        rows = (states + GATES_BESIDE_FORGET) * hidden_size
        self.weight = nn.Parameter(torch.empty(rows, input_size, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(rows, device=device, dtype=dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        reset_linear(self.weight, self.bias)

    def forward(self, z: Tensor, *cells: Tensor) -> tuple[Tensor, Tensor]:
        """See `gated_block`."""
        return gated_block(z, cells, self.weight, self.bias)

    def extra_repr(self) -> str:
        """What `repr` says inside the brackets."""
        forget = {0: [], 1: ["f"], 2: ["f_left", "f_right"]}.get(
            self.states, [f"f_{j}" for j in range(1, self.states + 1)]
        )
        gates = ", ".join([*forget, "i", "o", "u"])
        return f"{self.input_size} -> {self.hidden_size} x ({gates})" + (
            "" if self.bias is not None else ", bias=False"
        )
