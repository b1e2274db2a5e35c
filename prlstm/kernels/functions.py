"""Leaf and merge of an LSTM cell as functions, each block of it one operator: for a few states."""

from torch import Tensor

from prlstm.kernels.choose import Products
from prlstm.kernels.gated import gated
from prlstm.kernels.tree import CellWeights
from prlstm.tree import Node


class LSTMFunctions:
    """What a cell of these weights computes, in one arithmetic."""

    def __init__(self, cell: CellWeights, products: Products) -> None:
        biases: list[Tensor | None] = [*cell.biases] or [None] * len(cell.weights)
        self._blocks = list(zip(cell.weights, biases, strict=True))
        self._precision = products.precision

    def leaf(self, x: Tensor) -> Node:
        """The states of tokens (..., D)."""
        return self._block(0, [x], [])

    def merge(self, left: Node, right: Node) -> Node:
        """Compose and refine."""
        node = self._block(1, [left[0], right[0]], [left[1], right[1]])
        for stage in range(2, len(self._blocks)):
            node = self._block(stage, [node[0]], [node[1]])
        return node

    def _block(self, stage: int, h: list[Tensor], c: list[Tensor]) -> Node:
        weight, bias = self._blocks[stage]
        # a state that a user brought along may be narrower than those of a cell
        wide = [t.float() for t in c]
        return gated(h, wide, weight, bias, precision=self._precision)
