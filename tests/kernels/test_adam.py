"""Clipping and Adam by kernels are those of PyTorch."""

import pytest
import torch

from prlstm.kernels.adam import clip_and_update
from tests.compare import assert_rel
from tests.kernels.case import DEVICE

pytest.importorskip("triton")
BETAS, EPSILON = (0.9, 0.999), 1e-8


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("clip", [1.0, 1e9])
def test_steps_of_adam(seeds: int, clip: float) -> None:
    """Weights of many sizes, one of them bigger than a block; seeds are clipped by themselves."""
    shapes = [(seeds, 5), (seeds, 70, 40), (seeds, 1), (seeds, 3, 7)]
    weights = [torch.randn(shape, device=DEVICE) for shape in shapes]
    exact = [weight.double().requires_grad_() for weight in weights]
    adam = torch.optim.Adam(exact, 1e-2, BETAS, EPSILON)
    first, second = ([torch.zeros_like(w) for w in weights] for _ in range(2))
    rate = torch.tensor(1e-2, device=DEVICE)
    for step in range(4):
        gradients = [torch.randn_like(w) * (seeds + 1) for w in weights]
        gradients[1][0] *= 1e-4
        norm = clip_and_update(
            weights, gradients, first, second, torch.tensor(step, device=DEVICE), rate,
            clip=clip, betas=BETAS, epsilon=EPSILON,
        )  # fmt: skip
        wanted = torch.stack([g.double().flatten(1).square().sum(1) for g in gradients]).sum(0)
        assert_rel("norm", norm, wanted.sqrt(), 1e-6)
        scale = (clip / wanted.sqrt()).clamp(max=1)
        for weight, gradient in zip(exact, gradients, strict=True):
            weight.grad = gradient.double() * scale.view(-1, *[1] * (gradient.dim() - 1))
        adam.step()
    for mine, other in zip(weights, exact, strict=True):
        assert_rel("weight", mine, other.detach(), 1e-6)


def test_what_is_no_number_is_seen_in_the_norm() -> None:
    weights = [torch.ones(2, 3, device=DEVICE)]
    gradients = [torch.tensor([[1.0, 2, 3], [1, float("nan"), 3]], device=DEVICE)]
    moments = [[torch.zeros(2, 3, device=DEVICE)] for _ in range(2)]
    norm = clip_and_update(
        weights, gradients, *moments, torch.tensor(0, device=DEVICE),
        torch.tensor(1e-3, device=DEVICE), clip=1.0, betas=BETAS, epsilon=EPSILON,
    )  # fmt: skip
    assert norm.isfinite().tolist() == [True, False]
    assert weights[0][0].isfinite().all()
