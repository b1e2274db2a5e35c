"""Which code computes a tree: plain PyTorch, or the kernels."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.autograd.forward_ad import unpack_dual
from torch.utils.checkpoint import checkpoint

from prlstm.cells import Cell, LSTMCell
from prlstm.kernels.choose import Products, check_backend, choose
from prlstm.kernels.tree import CellWeights, sweep_lstm, sweep_lstm_ids
from prlstm.lengths import TIME
from prlstm.tree import Carry, MergeFunction, Node, Sweep, Words, sweep, tree_reduce_ids
from prlstm.tree import sweep_ids as look_up_and_sweep

LeafFunction = Callable[[Tensor], Node]


@dataclass(frozen=True)
class Backend:
    """How trees are computed: `name` forces one way, `checkpoint` saves memory in training."""

    name: str | None = None
    checkpoint: bool = False

    def __post_init__(self) -> None:
        check_backend(self.name)
        if not isinstance(self.checkpoint, bool):
            raise ValueError(f"checkpoint={self.checkpoint!r}: expected True or False")


@dataclass(frozen=True)
class Reader:
    """A cell for tokens of some features, and how its trees are computed."""

    cell: Cell
    input_size: int
    backend: Backend = Backend()

    def sweep(self, x: Tensor, earlier: Carry, start: int, *, every: bool) -> Sweep:
        """The tree over tokens `x` (B, T, D), or over ids (B, T), for the prefixes from `start` on.

        Of a sweep without gradients, blocks may be missing that no prefix to come needs, unless
        `every` one is asked for.
        """
        cell, backend = self.cell, self.backend
        if not x.is_floating_point():
            words = Words(self.input_size, x.shape[TIME])
            return self.sweep_ids(x, words, earlier, start, every=every)
        found = _by_kernels(cell, backend, x)
        if found is not None:
            return sweep_lstm(x, *found, earlier, start, every=every, checkpoint=backend.checkpoint)
        leaf, merge = _functions(cell, backend)
        return sweep(merge, _checked(leaf(x), cell, x), TIME, earlier, start)

    def sweep_ids(
        self, ids: Tensor, words: Words, earlier: Carry, start: int, *, every: bool = False
    ) -> Sweep:
        """The same over ids of which more is known: blocks of few tokens are looked up."""
        found = _by_kernels(self.cell, self.backend)
        if found is not None:
            return sweep_lstm_ids(
                ids, words, *found, earlier, start, every=every, checkpoint=self.backend.checkpoint
            )
        leaf, merge = _functions(self.cell, self.backend)
        return look_up_and_sweep(merge, self._alphabet(leaf), ids, words, earlier, start)

    def reduce_ids(self, ids: Tensor, words: Words, ends: Tensor) -> Node:
        """Every row's state alone after its first `ends` (B,) ids: tensors (B, H)."""
        return tree_reduce_ids(self.cell.merge, self._alphabet(self.cell.leaf), ids, words, ends)

    def _alphabet(self, leaf: LeafFunction) -> Node:
        """The states of all one-hot tokens."""
        assert isinstance(self.cell, nn.Module)
        weight = next(self.cell.parameters())
        x = torch.eye(self.input_size, dtype=weight.dtype, device=weight.device)
        return _checked(leaf(x), self.cell, x)


def _by_kernels(
    cell: Cell, backend: Backend, *given: Tensor
) -> tuple[CellWeights, Products] | None:
    """What the kernels need, if they are to compute the tree of a cell."""
    # a cell of the user's own may be one of ours with another merge
    if not isinstance(cell, LSTMCell) or type(cell) is not LSTMCell:
        return None
    weights = weights_of(cell)
    products = choose(backend.name, cell.leaf.weight)
    if products is not None and _has_tangent(*given, *weights.weights, *weights.biases):
        # the kernels know the backward pass alone
        if backend.name is not None:
            raise ValueError("backend='triton': expected no forward-mode derivatives")
        return None
    return None if products is None else (weights, products)


def _functions(cell: Cell, backend: Backend) -> tuple[LeafFunction, MergeFunction]:
    """Leaf and merge of a cell."""
    if backend.checkpoint and torch.is_grad_enabled() and not _is_inside_func():
        leaf, merge = (partial(checkpoint, f, use_reentrant=False) for f in (cell.leaf, cell.merge))
        return leaf, merge
    return cell.leaf, cell.merge


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
