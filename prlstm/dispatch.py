"""Which code computes a tree: plain PyTorch, or the kernels."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual
from torch.utils.checkpoint import checkpoint

from prlstm.cells import Cell, LSTMCell
from prlstm.kernels.choose import check_backend, choose
from prlstm.kernels.tree import CellWeights, sweep_lstm
from prlstm.lengths import TIME
from prlstm.tree import Carry, Node, Sweep, sweep


@dataclass(frozen=True)
class Backend:
    """How trees are computed: `name` forces one way, `checkpoint` saves memory in training."""

    name: str | None = None
    checkpoint: bool = False

    def __post_init__(self) -> None:
        check_backend(self.name)
        if not isinstance(self.checkpoint, bool):
            raise ValueError(f"checkpoint={self.checkpoint!r}: expected True or False")


def sweep_tokens(
    cell: Cell, x: Tensor, earlier: Carry, start: int, backend: Backend, *, every: bool
) -> Sweep:
    """The tree over tokens `x` (B, T, D), for the prefixes from `start` on.

    Of a sweep without gradients, blocks may be missing that no prefix to come needs, unless
    `every` one is asked for.
    """
    # a cell of the user's own may be one of ours with another merge
    if isinstance(cell, LSTMCell) and type(cell) is LSTMCell:
        weights = weights_of(cell)
        products = choose(backend.name, cell.leaf.weight)
        if products is not None and _has_tangent(x, *weights.weights, *weights.biases):
            # the kernels know the backward pass alone
            if backend.name is not None:
                raise ValueError("backend='triton': expected no forward-mode derivatives")
            products = None
        if products is not None:
            return sweep_lstm(
                x, weights, earlier, start, products, every=every, checkpoint=backend.checkpoint
            )
    leaf, merge = cell.leaf, cell.merge
    if backend.checkpoint and torch.is_grad_enabled() and not _is_inside_func():
        leaf, merge = (partial(checkpoint, f, use_reentrant=False) for f in (leaf, merge))
    return sweep(merge, _checked(leaf(x), cell, x), TIME, earlier, start)


def _has_tangent(*tensors: Tensor) -> bool:
    return any(
        unpack_dual(t).tangent is not None  # type: ignore[no-untyped-call]
        for t in tensors
    )


def _is_inside_func() -> bool:
    """Whether a transformation of `torch.func` is going on: PyTorch cannot recompute there."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def weights_of(cell: LSTMCell) -> CellWeights:
    """What the kernels need of a cell."""
    blocks = [cell.leaf, cell.compose, *cell.refine]
    biases = [block.bias for block in blocks if block.bias is not None]
    return CellWeights([block.weight for block in blocks], biases)


def _checked(leaves: Node, cell: Cell, x: Tensor) -> Node:
    """The leaves of `x`; of a cell of the user's own, we look whether they are what it said."""
    expected = [(*x.shape[:-1], size) for size in cell.state_sizes]
    given = [tuple(t.shape) for t in leaves] if isinstance(leaves, tuple) else type(leaves).__name__
    if given != expected:
        raise ValueError(
            f"leaf of {type(cell).__name__} returned {given}: expected a tuple of tensors "
            f"{expected}, as state_sizes={cell.state_sizes} says"
        )
    return leaves
