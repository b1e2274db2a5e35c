"""Loss and accuracy, as the benchmark defines them.

Shapes: `logits` (B, O, C), `target` (B, O) token ids, masks (B, O).
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Counts(NamedTuple):
    """How many answers of every row are right, and how many count: (B,) each."""

    correct: Tensor
    total: Tensor


def loss(logits: Tensor, target: Tensor, loss_mask: Tensor | None = None) -> Tensor:
    """Cross-entropy, averaged over all rows and all answers together.

    The zeros behind a terminator are trained on like any other answer. `loss_mask` leaves out
    what a shorter row of a mixed batch does not have.

    >>> even = torch.zeros(1, 2, 4)
    >>> float(loss(even, torch.tensor([[0, 3]])).exp())
    4.0
    """
    _check(logits, target, loss_mask)
    exact = logits.to(torch.promote_types(logits.dtype, torch.float32))
    each = -torch.log_softmax(exact, -1).gather(-1, target[..., None])[..., 0]
    if loss_mask is None:
        return each.mean()
    return torch.where(loss_mask, each, 0).sum() / loss_mask.sum()


def count(logits: Tensor, target: Tensor, mask: Tensor) -> Counts:
    """How many answers of every row the greatest logit gives, among those that count.

    Of equal logits the first one wins.
    """
    _check(logits, target, mask)
    hits = (logits.argmax(-1) == target) & mask
    return Counts(hits.sum(1), mask.sum(1))


def accuracy(logits: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """The share of right answers, pooled over all rows: longer answers weigh more."""
    correct, total = count(logits, target, mask)
    return correct.sum() / total.sum()


def _check(logits: Tensor, target: Tensor, mask: Tensor | None) -> None:
    if target.dtype != torch.int64:
        raise TypeError(f"target of type {target.dtype}: expected torch.int64")
    if logits.dim() != 3 or logits.shape[:2] != target.shape:
        raise ValueError(
            f"logits of shape {tuple(logits.shape)} for target of shape {tuple(target.shape)}: "
            "expected (B, O, C) and (B, O)"
        )
    if mask is not None and (mask.shape != target.shape or mask.dtype != torch.bool):
        raise ValueError(
            f"mask of shape {tuple(mask.shape)}, {mask.dtype}: "
            f"expected {tuple(target.shape)}, torch.bool"
        )
