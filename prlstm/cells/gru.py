"""PR-GRU: a state is h alone; a merge is a GRU cell that reads left and updates right."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prlstm.cells.affine import AffineBlock
from prlstm.cells.initial import TRUNCATED_STD, truncated_normal
from prlstm.cells.precision import wide
from prlstm.tree import Node


class GRUBlock(nn.Module):
    """A GRU cell with the left state as its input and the right one as its recurrent state.

    z, r = sigmoid(left W + right V)      a = tanh(left W + (r * right) V)
    h = (1 - z) * right + z * a

    so what is passed on unchanged is the *right* state. Rows of both weights: z, r, a. The left
    one may have another size.
    """

    def __init__(
        self,
        hidden_size: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        input_size: int | None = None,
    ) -> None:
        super().__init__()

        def empty(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(shape, device=device, dtype=dtype))

        gates = 3 * hidden_size
        self.weight_left = empty(gates, hidden_size if input_size is None else input_size)
        self.weight_right = empty(gates, hidden_size)
        self.bias = empty(gates) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights anew: these alone make up for the truncation of the normal."""
        for weight in (self.weight_left, self.weight_right):
            truncated_normal(weight, 1 / (TRUNCATED_STD * math.sqrt(weight.shape[1])))
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, left: Tensor, right: Tensor) -> tuple[Tensor]:
        """Shapes: all (..., H), or `left` (..., input_size)."""
        return (self.update(self.from_left(left), right),)

    def from_left(self, left: Tensor) -> Tensor:
        """What comes from the left: (..., 3H)."""
        return wide(_product(left, self.weight_left, self.bias))

    def update(self, from_left: Tensor, right: Tensor) -> Tensor:
        """The right state, updated."""
        hidden_size = self.weight_right.shape[1]
        to_gates = self.weight_right[: 2 * hidden_size]
        to_update = self.weight_right[2 * hidden_size :]
        gates = from_left[..., : 2 * hidden_size] + wide(_product(right, to_gates))
        z, r = torch.sigmoid(gates).chunk(2, -1)
        # under autocast the product takes half-precision operands again
        reset = (r * right).to(self.weight_right.dtype)
        a = torch.tanh(from_left[..., 2 * hidden_size :] + wide(_product(reset, to_update)))
        return ((1 - z) * right + z * a).to(self.weight_right.dtype)

    def extra_repr(self) -> str:
        """What `repr` says inside the brackets."""
        hidden_size = self.weight_right.shape[1]
        bias = "" if self.bias is not None else ", bias=False"
        return f"{self.weight_left.shape[1]} + {hidden_size} -> {hidden_size} x (z, r, a){bias}"


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """An affine map of `x` (..., H), as one product of rows.

    Many weights at once (vmap) would else be copied for every row of a batch.
    """
    return F.linear(x.flatten(0, -2), weight, bias).view(*x.shape[:-1], weight.shape[0])


class GRUCell(nn.Module):
    """Not in the paper, but in its authors' code. Has no refinement."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        refine: int = 0,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if refine != 0:
            raise ValueError(f"refine={refine}: the gru cell has no refinement, pass refine=0")
        self.state_sizes = (hidden_size,)
        self.leaf = AffineBlock(
            input_size, hidden_size, relu=False, bias=bias, device=device, dtype=dtype
        )
        self.compose = GRUBlock(hidden_size, bias, device, dtype)

    def merge(self, left: Node, right: Node) -> tuple[Tensor]:
        """Read the left state, update the right one."""
        (h,) = self.compose(*left, *right)
        return (h,)
