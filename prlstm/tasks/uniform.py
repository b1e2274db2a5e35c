"""Choices made from uniform numbers: exact, and equal on every device.

Only comparisons, products and roundings that IEEE arithmetic fixes are used, never a logarithm or
a power of floats, so that a number gives the same choice on a CPU and on a GPU.
"""

import torch
from torch import Tensor

# numbers of float32 are multiples of 2^-24: a finer probability cannot be told from 1/2
FINEST = 24


def pick(numbers: Tensor, choices: Tensor | int) -> Tensor:
    """One of 0, 1, ..., choices - 1 for every number in [0, 1), all equally likely.

    The greatest number below one lies more than half a unit in the last place of `choices` below
    it when multiplied, so no product rounds up to `choices` itself.
    """
    return (numbers * choices).long()


def positions(n: int, like: Tensor) -> Tensor:
    """0, 1, ..., n - 1 on the device of `like`."""
    return torch.arange(n, device=like.device)


def nonzero_bits(numbers: Tensor, width: Tensor) -> Tensor:
    """Bits (B, W), a row's first `width` (B,) uniform over all words but 00..0, zeros behind.

    A bit without a one before it, with r bits left, is one in 2^(r-1) of the 2^r - 1 words that
    are possible; every bit after the first one is free.
    """
    left = width[:, None] - positions(numbers.shape[1], numbers)
    words = 2 ** left.clamp(1, FINEST)
    first = numbers * (words - 1) < words // 2
    earlier = first.cumsum(1) > first
    return (torch.where(earlier, numbers < 0.5, first) & (left > 0)).long()
