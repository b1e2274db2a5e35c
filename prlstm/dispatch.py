"""Which code computes a tree: plain PyTorch, or the kernels."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.autograd.forward_ad import unpack_dual
from torch.utils.checkpoint import checkpoint

from prlstm.cells import Cell, LSTMCell
from prlstm.cells.in_place import InPlace, can_be_in_place
from prlstm.kernels.choose import Products, check_backend, choose
from prlstm.kernels.functions import LSTMFunctions
from prlstm.kernels.tree import CellWeights, sweep_lstm, sweep_lstm_ids
from prlstm.lengths import TIME
from prlstm.tree import Carry, MergeFunction, Node, Sweep, Words, sweep, tree_reduce_ids
from prlstm.tree import sweep_ids as look_up_and_sweep

LeafFunction = Callable[[Tensor], Node]
# tokens of all rows that are read at once where nobody reads but the last state; and how many
# times more there may be where blocks of ids are looked up
CHUNK, LOOKED_UP = {"cpu": 1 << 15, "cuda": 1 << 21}, 16
# states of other cells that a CPU merges at a time where no gradient is wanted
PIECE = 256
# tokens of all rows from which on it is worth making ready to compute them in place
MANY = 32


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
    """A cell for tokens of some features, and how its trees are computed.

    With `rounded`, h of trees over ids may be given in the type of products, as it is kept.
    """

    cell: Cell
    input_size: int
    # no default: the compiler cannot make one
    backend: Backend
    rounded: bool = False

    def sweep(self, x: Tensor, earlier: Carry, start: int, *, every: bool) -> Sweep:
        """The tree over tokens `x` (B, T, D), or over ids (B, T), for the prefixes from `start` on.

        Of a sweep without gradients, blocks may be missing that no prefix to come needs, unless
        `every` one is asked for; and where nobody reads but the last prefix of a long sequence, it
        is a sweep over the end of it, after all that came before.
        """
        if not x.is_floating_point():
            words = Words(self.input_size, x.shape[TIME])
            return self.sweep_ids(x, words, earlier, start, every=every)
        while not every and (size := _chunk(x, earlier, start)):
            head, x, start = x[:, :size], x[:, size:], start - size
            earlier = self._sweep(head, earlier, size - 1, every=False).carry()
        return self._sweep(x, earlier, start, every=every)

    def sweep_ids(
        self, ids: Tensor, words: Words, earlier: Carry, start: int, *, every: bool = False
    ) -> Sweep:
        """The same over ids of which more is known: blocks of few tokens are looked up."""
        while not every and (size := _chunk(ids, earlier, start)):
            head, ids, start = ids[:, :size], ids[:, size:], start - size
            begin, words = words.split(size)
            earlier = self._sweep_ids(head, begin, earlier, size - 1, every=False).carry()
        return self._sweep_ids(ids, words, earlier, start, every=every)

    def _sweep(self, x: Tensor, earlier: Carry, start: int, *, every: bool) -> Sweep:
        found = _by_kernels(self.cell, self.backend, x)
        if found is not None:
            keep = self.backend.checkpoint
            return sweep_lstm(x, *found, earlier, start, every=every, checkpoint=keep)
        leaf, merge = _functions(self.cell, self.backend, x.shape[:2].numel())
        return sweep(merge, _checked(leaf(x), self.cell, x), TIME, earlier, start)

    def _sweep_ids(
        self, ids: Tensor, words: Words, earlier: Carry, start: int, *, every: bool
    ) -> Sweep:
        found = _by_kernels(self.cell, self.backend)
        if found is not None:
            return sweep_lstm_ids(
                ids, words, *found, earlier, start, every=every,
                checkpoint=self.backend.checkpoint, rounded=self.rounded,
            )  # fmt: skip
        leaf, merge = _functions(self.cell, self.backend, ids.numel())
        return look_up_and_sweep(merge, self._alphabet(leaf), ids, words, earlier, start)

    def functions(self, x: Tensor) -> tuple[LeafFunction, MergeFunction]:
        """Leaf and merge, for states that are not those of one tree; the leaf takes ids as well."""
        # of a few states a launch of PyTorch's own operators costs less
        found = None if self.backend.name is None else _by_kernels(self.cell, self.backend, x)
        if found is None:
            leaf, merge = _functions(self.cell, self.backend, len(x))
        else:
            functions = LSTMFunctions(*found)
            leaf, merge = functions.leaf, functions.merge
        return partial(self._leaves, leaf), merge

    def kernels(self) -> tuple[CellWeights, Products] | None:
        """What the kernels need, where they are to be used."""
        return _by_kernels(self.cell, self.backend)

    def one_hot(self, ids: Tensor) -> Tensor:
        """The tokens (..., D) that ids (...) stand for."""
        assert isinstance(self.cell, nn.Module)
        known = torch.arange(self.input_size, device=ids.device)
        return (ids[..., None] == known).to(next(self.cell.parameters()).dtype)

    def _leaves(self, leaf: LeafFunction, x: Tensor) -> Node:
        tokens = x if x.is_floating_point() else self.one_hot(x)
        return _checked(leaf(tokens), self.cell, tokens)

    def reduce_ids(self, ids: Tensor, words: Words, ends: Tensor) -> Node:
        """Every row's state alone after its first `ends` (B,) ids: tensors (B, H)."""
        leaf, merge = _functions(self.cell, self.backend, ids.numel())
        return tree_reduce_ids(merge, self._alphabet(leaf), ids, words, ends)

    def _alphabet(self, leaf: LeafFunction) -> Node:
        """The states of all one-hot tokens."""
        assert isinstance(self.cell, nn.Module)
        weight = next(self.cell.parameters())
        x = torch.eye(self.input_size, dtype=weight.dtype, device=weight.device)
        return _checked(leaf(x), self.cell, x)


def _chunk(x: Tensor, earlier: Carry, start: int) -> int:
    """How many tokens to read first, of a long sequence of which the last prefix alone is read.

    They end where a block does that is as big as memory allows; 0 where the rest can be read.
    """
    rows, length = x.shape[:2]
    if torch.is_grad_enabled() or start != length - 1:
        return 0
    tokens = CHUNK.get(x.device.type, CHUNK["cpu"])
    if not x.is_floating_point():
        tokens *= LOOKED_UP
    chunk = 1 << max(1, tokens // max(1, rows)).bit_length() - 1
    return chunk - earlier.count % chunk if length > chunk else 0


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


def _functions(cell: Cell, backend: Backend, tokens: int) -> tuple[LeafFunction, MergeFunction]:
    """Leaf and merge of a cell, for the trees over so many tokens."""
    if backend.checkpoint and torch.is_grad_enabled() and not _is_inside_func():
        leaf, merge = (partial(checkpoint, f, use_reentrant=False) for f in (cell.leaf, cell.merge))
        return leaf, merge
    if torch.is_grad_enabled() or torch.compiler.is_compiling():
        return cell.leaf, cell.merge
    if tokens < MANY:
        return cell.leaf, cell.merge
    if isinstance(cell, LSTMCell) and can_be_in_place(cell):
        in_place = InPlace(cell)
        return in_place.leaf, in_place.merge
    return cell.leaf, partial(_in_pieces, cell.merge)


def _in_pieces(merge: MergeFunction, left: Node, right: Node) -> Node:
    """A merge of many states on a CPU, some rows at a time: what is between stays in its cache."""
    shape = left[0].shape[:-1]
    if left[0].device.type != "cpu" or shape.numel() < 2 * PIECE:
        return merge(left, right)
    rows = [
        [torch.split(t.reshape(-1, t.shape[-1]), PIECE) for t in node] for node in (left, right)
    ]
    made = [merge(*pair) for pair in zip(*(zip(*node, strict=True) for node in rows), strict=True)]
    return tuple(torch.cat(parts).view(*shape, -1) for parts in zip(*made, strict=True))


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
