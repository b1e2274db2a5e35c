"""Gradients of weights, summed over the ranks that each hold a share of them."""

from collections import defaultdict

import torch
import torch.distributed as dist
from torch import nn

from prlstm.distributed.sequence.ranks import Ranks


def sum_gradients(module: nn.Module, group: dist.ProcessGroup | None = None) -> None:
    """Replace every weight's gradient by the sum over all ranks: that of the sum of their losses.

    To be called by every rank after its `backward`, with the same module: where names, shapes,
    types, or what is trained differ, all raise the same `ValueError`. A weight without a gradient
    on this rank counts as zero. One exchange to compare, and one for each type of numbers.
    """
    ranks = Ranks(group)
    # in an order that does not depend on how the module was made
    named = sorted(module.named_parameters())
    device = named[0][1].device if named else torch.device("cpu")
    ranks.agree(0, {f"weight {name}": _kind(weight) for name, weight in named}, device)
    weights: defaultdict[torch.dtype, list[nn.Parameter]] = defaultdict(list)
    for _, weight in named:
        if weight.requires_grad:
            weights[weight.dtype].append(weight)
    for same in weights.values():
        grads = [torch.zeros_like(w) if w.grad is None else w.grad for w in same]
        flat = torch.cat([grad.flatten() for grad in grads])
        ranks.all_sum(flat, "summing gradients")
        totals = torch.split(flat, [grad.numel() for grad in grads])
        for weight, total in zip(same, totals, strict=True):
            weight.grad = total.view_as(weight)


def _kind(weight: nn.Parameter) -> str:
    """What must be the same on every rank."""
    if not weight.requires_grad:
        return "frozen"
    return f"{tuple(weight.shape)} of {weight.dtype}"
