"""PR-RNN: a state is h alone; composition and refinements are ReLU layers, the leaf is affine."""

import torch
from torch import Tensor, nn

from prlstm.cells.affine import AffineBlock
from prlstm.tree import Node


class ReLUCell(nn.Module):
    """The paper's ablation without gates and without c. States above the leaves are >= 0."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        refine: int = 1,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.state_sizes = (hidden_size,)

        def block(size: int, relu: bool) -> AffineBlock:
            return AffineBlock(size, hidden_size, relu=relu, bias=bias, device=device, dtype=dtype)

        self.leaf = block(input_size, relu=False)
        self.compose = block(2 * hidden_size, relu=True)
        self.refine = nn.ModuleList(block(hidden_size, relu=True) for _ in range(refine))

    def merge(self, left: Node, right: Node) -> tuple[Tensor]:
        """Compose two neighbouring states, then refine the result."""
        (h,) = self.compose(torch.cat((*left, *right), -1))
        for stage in self.refine:
            (h,) = stage(h)
        return (h,)
