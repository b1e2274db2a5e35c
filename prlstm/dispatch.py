"""Which code computes a tree: plain PyTorch, or the kernels."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn
from torch.autograd.forward_ad import unpack_dual
from torch.utils.checkpoint import checkpoint

from prlstm.cells import Cell, LSTMCell
from prlstm.cells.in_place import InPlace, can_be_in_place
from prlstm.kernels.choose import Products, check_backend, choose
from prlstm.kernels.functions import LSTMFunctions
from prlstm.kernels.tables import EXTRA as EXTRA_OF_KERNELS
from prlstm.kernels.tree import CellWeights, sweep_lstm, sweep_lstm_ids
from prlstm.lengths import TIME
from prlstm.tree import Carry, MergeFunction, Node, Sweep, Words, cut, sweep, tree_reduce_ids
from prlstm.tree import sweep_ids as look_up_and_sweep
from prlstm.tree.spelling import tables_for
from prlstm.tree.tables import EXTRA

LeafFunction = Callable[[Tensor], Node]
# states of all rows that are made at once where no gradient is wanted; what is longer is read in
# pieces. Blocks of ids that are looked up are one state each, up to those of level `HIGHEST`
STATES, HIGHEST = {"cpu": 1 << 15, "cuda": 1 << 21}, 4
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
    # the states of all one-hot tokens, where they are made already
    alphabet: Node | None = None

    def pieces(self, x: Tensor, words: Words | None, count: int, start: int) -> list[range]:
        """As what `x` (B, T, D), or ids (B, T), is read: one piece after the other, or one alone.

        They stand behind `count` other tokens; prefixes are read from `start` on. `words` is what
        is known of ids. A gradient needs the whole tree at once.
        """
        rows, length = x.shape[:2]
        most = STATES.get(x.device.type, STATES["cpu"])
        # the compiler's number of rows stays what it is: one program serves all that fit
        aligned = words is None or not count or torch.compiler.is_compiling()
        if torch.is_grad_enabled() or (aligned and rows * length <= most):
            return [range(length)]
        most = max(1, most // max(1, rows))
        block = 1
        if words is not None:
            extra = EXTRA if self.kernels() is None else EXTRA_OF_KERNELS
            tokens = min(length, most << HIGHEST)
            block <<= tables_for(words, tokens, rows, most=HIGHEST, extra=extra)[-1].level
        return cut(length, count=count, start=start, most=most, block=block)

    def sweep_to_end(self, x: Tensor, earlier: Carry) -> Sweep:
        """The tree over tokens of which nobody reads but the last prefix: its last piece."""
        reader, words = self.prepared(x), self.words(x)
        *pieces, end = self.pieces(x, words, earlier.count, x.shape[TIME] - 1)
        for piece in pieces:
            here = x[:, piece.start : piece.stop]
            earlier = reader.sweep(here, earlier, len(piece) - 1).carry()
        return reader.sweep(x[:, end.start :], earlier, len(end) - 1)

    def prefixes_of_ids(
        self, ids: Tensor, words: Words, start: int
    ) -> Iterator[tuple[int, Tensor]]:
        """H (B, n, H) of the prefixes from `start` on, as pieces, each with its first place."""
        earlier, reader = Carry(), self.prepared(ids)
        for piece in self.pieces(ids, words, 0, start):
            first = min(max(start, piece.start), piece.stop - 1)
            h, earlier = reader._prefixes_of_piece(ids, words, piece, earlier, first)
            if first >= start:
                yield first, h

    def _prefixes_of_piece(
        self, ids: Tensor, words: Words, piece: range, earlier: Carry, first: int
    ) -> tuple[Tensor, Carry]:
        # a function of its own: of one piece nothing else is kept while the next is read
        here, known = ids[:, piece.start : piece.stop], words.part(piece)
        done = self.sweep_ids(here, known, earlier, first - piece.start)
        return done.read[0], done.carry() if piece.stop < ids.shape[TIME] else earlier

    def words(self, x: Tensor) -> Words | None:
        """What is known of ids (B, T) if no one says more; None of other tokens."""
        return None if x.is_floating_point() else Words(self.input_size, x.shape[TIME])

    def sweep(self, x: Tensor, earlier: Carry, start: int, *, every: bool = False) -> Sweep:
        """The tree over tokens `x` (B, T, D), or over ids (B, T), for the prefixes from `start` on.

        Of a sweep without gradients, blocks may be missing that no prefix to come needs, unless
        `every` one is asked for.
        """
        words = self.words(x)
        if words is not None:
            return self.sweep_ids(x, words, earlier, start, every=every)
        found = _by_kernels(self.cell, self.backend, x)
        if found is not None:
            keep = self.backend.checkpoint
            return sweep_lstm(x, *found, earlier, start, every=every, checkpoint=keep)
        leaf, merge = _functions(self.cell, self.backend, x.shape[:2].numel())
        return sweep(merge, _checked(leaf(x), self.cell, x), TIME, earlier, start)

    def sweep_ids(
        self, ids: Tensor, words: Words, earlier: Carry, start: int, *, every: bool = False
    ) -> Sweep:
        """The same over ids of which more is known: blocks of few tokens are looked up."""
        found = self.kernels()
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
        pieces = self.pieces(ids, words, 0, ids.shape[TIME] - 1)
        return tree_reduce_ids(merge, self._alphabet(leaf), ids, words, ends, pieces)

    def prepared(self, x: Tensor) -> "Reader":
        """A reader for several pieces of `x`: the states of all ids are made once."""
        if x.is_floating_point() or self.kernels() is not None:
            return self
        leaf, _ = _functions(self.cell, self.backend, x.numel())
        return replace(self, alphabet=self._alphabet(leaf))

    def _alphabet(self, leaf: LeafFunction) -> Node:
        """The states of all one-hot tokens."""
        if self.alphabet is not None:
            return self.alphabet
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
