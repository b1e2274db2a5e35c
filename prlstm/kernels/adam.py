"""Clipping and Adam as two launches, whatever the number of weights."""

from collections.abc import Sequence

import torch
from torch import Tensor

from prlstm.kernels.launch import empty, imported

# weights of one program
BLOCK = 2048


def clip_and_update(
    weights: Sequence[Tensor],
    gradients: Sequence[Tensor],
    first: Sequence[Tensor],
    second: Sequence[Tensor],
    step: Tensor,
    rate: Tensor,
    *,
    clip: float,
    betas: tuple[float, float],
    epsilon: float,
) -> Tensor:
    """Scale the gradients (S, ...) of each seed to a norm of `clip` at most; make a step of Adam.

    Weights and their moments, float32, are changed in place; `step` counts the steps before this
    one. Gives the norms (S,) from before they were scaled. Sums are in one order: equal gradients
    give equal bits.
    """
    seeds = weights[0].shape[0]
    sizes = tuple(weight[0].numel() for weight in weights)
    blocks = sum(-(-size // BLOCK) for size in sizes)
    squares = empty(weights[0], (seeds, blocks), torch.float32)
    norm = empty(weights[0], (seeds,), torch.float32)
    dense = tuple(gradient.contiguous() for gradient in gradients)
    kernels, count = imported("update"), len(weights)
    kernels.square_gradients[blocks, seeds](dense, sizes, squares, N=count, BLOCK=BLOCK)
    kernels.update_weights[blocks, seeds](
        tuple(weights), dense, tuple(first), tuple(second), sizes, squares, norm, step, rate,
        clip, *betas, epsilon,
        N=count, BLOCK=BLOCK, SQUARES=1 << max(0, blocks - 1).bit_length(),
    )  # fmt: skip
    return norm
