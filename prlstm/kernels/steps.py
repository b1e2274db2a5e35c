"""What a step of training needs besides the model: numbers, scores, updates. One launch or two."""

from collections.abc import Sequence

import torch
from torch import Tensor

from prlstm.kernels.launch import empty, imported
from prlstm.kernels.tiles import block_for

# numbers that one program draws, answers that one scores, weights that one updates
DRAWN, SCORED, UPDATED = 1024, 256, 2048
# classes that fit beside the rows of a program
MOST_CLASSES = 256


def draw_uniform(key: Tensor, step: int | Tensor, count: int, first: int = 0) -> Tensor:
    """Numbers (K, count) in [0, 1), float32: those of a step from `first` on, for each key (K,)."""
    numbers = empty(key, (key.shape[0], count), torch.float32)
    given = (step, 0) if isinstance(step, Tensor) else (None, step)
    if numbers.numel():
        with torch.cuda.device(key.get_device()):
            imported("numbers").draw[-(-count // DRAWN), key.shape[0]](
                key, *given, numbers, count, first, BLOCK=DRAWN
            )
    return numbers


def score_answers(logits: Tensor, target: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Loss, right answers and all that count, (3, S) in float64; and the gradient of the loss.

    Of logits (S, B, O, C), answers (S, B, O) and which of them count.
    """
    (seeds, *_, classes), rows = logits.shape, target[0].numel()
    given, blocks = logits.detach().contiguous(), -(-rows // SCORED)
    gradient, scores = empty(given, given.shape), empty(given, (3, seeds, blocks), torch.float64)
    with torch.cuda.device(given.get_device()):
        imported("answers").score[blocks, seeds](
            given, target.contiguous(), mask.contiguous(), gradient, scores, rows,
            C=classes, BLOCK=SCORED, BLOCK_C=block_for(classes),
        )  # fmt: skip
    return scores.sum(2) if blocks > 1 else scores[:, :, 0], gradient


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
    blocks = sum(-(-size // UPDATED) for size in sizes)
    squares = empty(weights[0], (seeds, blocks), torch.float32)
    norm = empty(weights[0], (seeds,), torch.float32)
    dense = tuple(gradient.contiguous() for gradient in gradients)
    kernels, count = imported("update"), len(weights)
    with torch.cuda.device(norm.get_device()):
        kernels.square_gradients[blocks, seeds](dense, sizes, squares, N=count, BLOCK=UPDATED)
        kernels.update_weights[blocks, seeds](
            tuple(weights), dense, tuple(first), tuple(second), sizes, squares, norm, step, rate,
            clip, *betas, epsilon,
            N=count, BLOCK=UPDATED, SQUARES=1 << max(0, blocks - 1).bit_length(),
        )  # fmt: skip
    return norm
