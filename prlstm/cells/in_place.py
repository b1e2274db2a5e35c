"""PR-LSTM on a CPU where no gradient is wanted: in place, some states at a time.

What stands between two states is written over and over into the same memory, and the tangent is
made in half of PyTorch's time. The numbers are those of `LSTMCell`, rounded in other places.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from prlstm.cells.gated import GATES_BESIDE_FORGET, GatedBlock
from prlstm.cells.lstm import LSTMCell
from prlstm.tree import Node

# numbers in the gates that are computed at a time, or up to twice as many
PIECE = 1 << 19
# its tangent is 1 in float64; the exponential of much more would be infinite
SATURATED = 20.0


def can_be_in_place(cell: nn.Module) -> bool:
    """Whether nothing wants to know how a cell came to its states, and all is of one type."""
    # a cell of the user's own may be one of ours with another merge, or with blocks of his own
    if type(cell) is not LSTMCell or not all(map(_is_plain, _blocks(cell))):
        return False
    weights = list(cell.parameters())
    dtype = weights[0].dtype
    return (
        not torch.is_grad_enabled()
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cpu")
        and torch._C._functorch.peek_interpreter_stack() is None
        and forward_ad._current_level < 0
        and dtype in (torch.float32, torch.float64)
        and all(type(w) is nn.Parameter and w.is_cpu and w.dtype == dtype for w in weights)
    )


def _blocks(cell: LSTMCell) -> list[nn.Module]:
    return [cell.leaf, cell.compose, *cell.refine]


def _is_plain(block: nn.Module) -> bool:
    """Whether nobody sees if it is called."""
    return type(block) is GatedBlock and not block._forward_hooks and not block._forward_pre_hooks


class InPlace:
    """Leaf and merge of a cell. The memory serves one call at a time."""

    def __init__(self, cell: LSTMCell) -> None:
        self.cell, self.size = cell, cell.state_sizes[0]
        self.memory = cell.compose.weight.new_empty(0, 0)

    def leaf(self, x: Tensor) -> Node:
        """See `LSTMCell`."""
        rows = x.reshape(-1, x.shape[-1])
        h, c = (x.new_empty(len(rows), self.size) for _ in range(2))
        for z, *new in self._pieces(rows, h, c):
            self._block(self.cell.leaf, z, (), *new)
        return tuple(t.view(*x.shape[:-1], self.size) for t in (h, c))

    def merge(self, left: Node, right: Node) -> Node:
        """See `LSTMCell`."""
        if any(t.dtype != self.memory.dtype for t in (*left, *right)):
            # as given by a user who goes on from states of another type
            return self.cell.merge(left, right)
        (h_left, c_left), (h_right, c_right) = (
            [t.reshape(-1, self.size) for t in node] for node in (left, right)
        )
        h, c = (c_left.new_empty(c_left.shape) for _ in range(2))
        pairs = _side_by_side(h_left, h_right)
        for z, *cells, h_new, c_new in self._pieces(pairs, c_left, c_right, h, c):
            self._block(self.cell.compose, z, cells, h_new, c_new)
            for stage in self.cell.refine:
                assert isinstance(stage, GatedBlock)
                self._block(stage, h_new, (c_new,), h_new, c_new)
        return tuple(t.view(left[0].shape) for t in (h, c))

    def _pieces(self, *tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
        """The same rows of all tensors, a few at a time."""
        rows, gates = len(tensors[0]), len(self.cell.compose.weight)
        pieces = max(1, rows * gates // PIECE)
        size = -(-rows // pieces)
        if len(self.memory) < size:
            self.memory = self.memory.new_empty(size, gates + self.size)
        if pieces == 1:
            yield tensors
        else:
            yield from zip(*(torch.split(t, size) for t in tensors), strict=True)

    def _block(
        self, block: GatedBlock, z: Tensor, cells: Sequence[Tensor], h: Tensor, c: Tensor
    ) -> None:
        """The new state into `h` and `c`; these may be what is read."""
        weight, rows = block.weight, len(z)
        memory = self.memory.view(-1)
        made = memory[: rows * self.size].view(rows, self.size)
        gates = memory[made.numel() : made.numel() + rows * len(weight)].view(rows, len(weight))
        if block.bias is None:
            torch.mm(z, weight.t(), out=gates)
        else:
            torch.addmm(block.bias, z, weight.t(), out=gates)
        gates[:, : -self.size].sigmoid_()
        *forget, i, o, u = gates.chunk(len(cells) + GATES_BESIDE_FORGET, -1)
        torch.clamp(u, max=SATURATED, out=made)
        _tanh(made, u).mul_(i)
        for f, c_in in zip(forget, cells, strict=True):
            made.addcmul_(f, c_in)
        c.copy_(made)
        torch.mul(o, _tanh(made.clamp_(max=SATURATED), u), out=h)


def _tanh(x: Tensor, scratch: Tensor) -> Tensor:
    """The hyperbolic tangent of x <= SATURATED, in place, with the relative error of PyTorch's."""
    x.mul_(2).expm1_()
    return x.div_(torch.add(x, 2, out=scratch))


def _side_by_side(left: Tensor, right: Tensor) -> Tensor:
    """Rows (R, 2 H) of two (R, H): without a copy where they are neighbours in memory."""
    rows, size = left.shape
    apart = right.storage_offset() - left.storage_offset()
    is_pair = left.stride() == right.stride() == (2 * size, 1) and apart == size
    if is_pair and left.untyped_storage().data_ptr() == right.untyped_storage().data_ptr():
        return left.as_strided((rows, 2 * size), (2 * size, 1))
    return torch.cat((left, right), -1)
