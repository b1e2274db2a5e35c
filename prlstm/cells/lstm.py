"""PR-LSTM: a state is (h, c); a merge is one composition and `refine` refinements."""

import torch
from torch import Tensor, nn

from prlstm.cells.gated import GatedBlock
from prlstm.tree import Node


class LSTMCell(nn.Module):
    """The main model's cell. All nodes of the tree share its weights."""

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
        self.state_sizes = (hidden_size, hidden_size)
        self.leaf = GatedBlock(0, input_size, hidden_size, bias, device, dtype)
        self.compose = GatedBlock(2, 2 * hidden_size, hidden_size, bias, device, dtype)
        self.refine = nn.ModuleList(
            GatedBlock(1, hidden_size, hidden_size, bias, device, dtype) for _ in range(refine)
        )

    def merge(self, left: Node, right: Node) -> tuple[Tensor, Tensor]:
        """Compose two neighbouring states, then refine the result."""
        (h_left, c_left), (h_right, c_right) = left, right
        h, c = self.compose(torch.cat((h_left, h_right), -1), c_left, c_right)
        for stage in self.refine:
            h, c = stage(h, c)
        return h, c
