"""Uniform numbers as a function of (seed, split, step): no state, equal on every device.

A number is a hash of where it stands. So a seed sees the same batches alone and beside others, on
a CPU and on a GPU, and a run that is resumed needs no state of a generator.
"""

import hashlib

import torch
from torch import Tensor

from prlstm.kernels.choose import is_usable
from prlstm.kernels.steps import draw_uniform

# odd multipliers of a well-mixing 64-bit hash (the finaliser of splitmix64), as signed integers
FIRST, SECOND, STRIDE = (
    value - (1 << 64) if value >> 63 else value
    for value in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0x9E3779B97F4A7C15)
)
# float32 has this many bits of a number in [0, 1)
BITS = 24


def keys(seeds: list[int], split: str) -> Tensor:
    """One key (S,) for each seed: what tells its numbers from those of others."""
    return torch.tensor([_signed(f"{seed}/{split}") for seed in seeds])


def derived(key: Tensor, step: int | Tensor) -> Tensor:
    """For each key (...) the one of a step."""
    # as a tensor a product wraps around
    moment = torch.full_like(key, step) if isinstance(step, int) else step
    return _mixed(key + STRIDE * moment)


def uniform(key: Tensor, step: int | Tensor, count: int, first: int = 0) -> Tensor:
    """Numbers (..., count) in [0, 1), float32: those of a step from `first` on, for each key."""
    if key.dim() == 1 and is_usable(key):
        return draw_uniform(key, step, count, first)
    place = torch.arange(first + 1, first + count + 1, device=key.device)
    state = _mixed(derived(key, step)[..., None] + STRIDE * place)
    return _shifted(state, 64 - BITS).to(torch.float32) * 2.0**-BITS


def choice(seed: int, split: str, step: int, choices: int) -> int:
    """One of 0, 1, ..., choices - 1, decided on the host."""
    return (_signed(f"{seed}/{split}/{step}") % (1 << 64)) * choices >> 64


def _mixed(x: Tensor) -> Tensor:
    """Every bit depends on every bit. Products wrap around."""
    x = (x ^ _shifted(x, 30)) * FIRST
    x = (x ^ _shifted(x, 27)) * SECOND
    return x ^ _shifted(x, 31)


def _shifted(x: Tensor, bits: int) -> Tensor:
    """To the right, zeros coming in: int64 has a sign, which must not come along."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _signed(text: str) -> int:
    return int.from_bytes(
        hashlib.blake2b(text.encode(), digest_size=8).digest(), "big", signed=True
    )
