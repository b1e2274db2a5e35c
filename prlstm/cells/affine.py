"""A block without gates: an affine map, with or without a ReLU behind it."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prlstm.cells.initial import reset_linear


class AffineBlock(nn.Module):
    """Gives the one-tensor state `(h,)` with `h = Linear(z)`, or `h = relu(Linear(z))`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        relu: bool,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.relu = relu
        self.weight = nn.Parameter(torch.empty(hidden_size, input_size, device=device, dtype=dtype))
        self.bias = (
            nn.Parameter(torch.empty(hidden_size, device=device, dtype=dtype)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        reset_linear(self.weight, self.bias)

    def forward(self, z: Tensor) -> tuple[Tensor]:
        """Shapes: `z` (..., input_size), h (..., hidden_size); h has the type of the weight."""
        h = F.linear(z, self.weight, self.bias).to(self.weight.dtype)
        return (torch.relu(h) if self.relu else h,)

    def extra_repr(self) -> str:
        """What `repr` says inside the brackets."""
        hidden_size, input_size = self.weight.shape
        bias = "" if self.bias is not None else ", bias=False"
        return f"{input_size} -> {hidden_size}{', relu' if self.relu else ''}{bias}"
