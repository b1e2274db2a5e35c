"""States handed from every rank to every other, and their gradients back."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from prlstm.distributed.sequence.ranks import Ranks
from prlstm.tree import Node


def gathered(ranks: Ranks, node: Node) -> Node:
    """The states (...) of all ranks: (world, ...) of every tensor, in one exchange.

    In the backward pass every rank gets back what all others have found for its own states, and
    adds it up in the order of the ranks. So every rank must go backward as well: see `joined`.
    """
    made: Node = _Gathered.apply(ranks, *node)  # type: ignore[no-untyped-call]
    return made


def joined(exchanged: Node, node: Node) -> Node:
    """The tensors of `node`, whose backward pass goes through what was `exchanged` in any case.

    The first rank reads nothing of what the others sent. Without this it would not take part in
    the backward exchange, and they would wait for it.
    """
    made: Node = _Joined.apply(len(exchanged), *exchanged, *node)  # type: ignore[no-untyped-call]
    return made


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, ranks: Ranks, *node: Tensor) -> Node:
        # bytes: h and c may be of different types
        rows = ranks.all_gather(_packed([t[None] for t in node])[0], "exchanging states")
        made = _unpacked(rows, node)
        ctx.ranks, ctx.floating = ranks, [t.is_floating_point() for t in node]
        ctx.mark_non_differentiable(*(t for t in made if not t.is_floating_point()))
        return made

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        known = [g for g, floating in zip(gradients, ctx.floating, strict=True) if floating]
        rows = ctx.ranks.all_to_all(_packed(known), "exchanging gradients of states")
        sums = iter([t.sum(0) for t in _unpacked(rows, [g[0] for g in known])])
        return None, *(next(sums) if floating else None for floating in ctx.floating)


class _Joined(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, count: int, *tensors: Tensor) -> Node:
        ctx.exchanged = [(t.shape, t.dtype, t.device) for t in tensors[:count]]
        made = tuple(t.view_as(t) for t in tensors[count:])
        ctx.mark_non_differentiable(*(t for t in made if not t.is_floating_point()))
        return made

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        zeros = (
            torch.zeros(shape, dtype=dtype, device=device) if dtype.is_floating_point else None
            for shape, dtype, device in ctx.exchanged
        )
        return None, *zeros, *gradients


def _packed(tensors: Sequence[Tensor]) -> Tensor:
    """The bytes (rows, n) of tensors (rows, ...), side by side."""
    return torch.cat([t.contiguous().view(len(t), -1).view(torch.uint8) for t in tensors], 1)


def _unpacked(rows: Tensor, like: Sequence[Tensor]) -> Node:
    """Tensors (rows, ...) of bytes, each row of the shape and type of one of `like`."""
    ends = accumulate((t.nbytes for t in like), initial=0)
    return tuple(
        # a copy stands where its type wants it in memory
        rows[:, start:stop]
        .clone(memory_format=torch.contiguous_format)
        .view(t.dtype)
        .view(len(rows), *t.shape)
        for (start, stop), t in zip(pairwise(ends), like, strict=True)
    )
