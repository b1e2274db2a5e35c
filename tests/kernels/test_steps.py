"""Numbers, loss and updates by kernels are those of plain PyTorch."""

import pytest
import torch

from prlstm import tasks
from prlstm.kernels.steps import clip_and_update, draw_uniform, score_answers
from prlstm.stream import keys, uniform
from tests.compare import assert_rel
from tests.kernels.case import DEVICE

pytest.importorskip("triton")
BETAS, EPSILON = (0.9, 0.999), 1e-8


@pytest.mark.parametrize("seeds", [[0], [3, 1, 7]])
@pytest.mark.parametrize("step", [0, 5, 1 << 40])
def test_numbers_are_those_of_the_stream(seeds: list[int], step: int) -> None:
    """Bit for bit."""
    key = keys(seeds, "train")
    for count, first in ((1, 0), (1024, 3), (3000, 1 << 30)):
        want = uniform(key, step, count, first)
        assert draw_uniform(key.to(DEVICE), step, count, first).cpu().equal(want)
        moment = torch.tensor(step, device=DEVICE)
        assert draw_uniform(key.to(DEVICE), moment, count, first).cpu().equal(want)


@pytest.mark.parametrize("shape", [(1, 8, 1, 2), (3, 128, 5, 3), (2, 70, 20, 17)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_answers_are_scored_as_the_task_does(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    logits = (3 * torch.randn(shape)).to(dtype)
    # many are equal: the first one wins
    logits = (logits * 2).round().to(DEVICE) / 2
    target = torch.randint(shape[-1], shape[:-1], device=DEVICE)
    mask = torch.rand(shape[:-1], device=DEVICE) < 0.7
    scores, gradient = score_answers(logits, target, mask)
    assert gradient.dtype == dtype
    for seed in range(shape[0]):
        exact = logits[seed].double().requires_grad_()
        loss = tasks.loss(exact, target[seed])
        loss.backward()
        assert exact.grad is not None
        assert_rel("loss", scores[0, seed], loss.detach(), 1e-6)
        assert_rel("gradient", gradient[seed], exact.grad, 1e-6 if dtype == torch.float32 else 4e-3)
        counts = tasks.count(exact, target[seed], mask[seed])
        assert scores[1:, seed].tolist() == [float(counts.correct.sum()), float(counts.total.sum())]


def test_logits_that_are_no_numbers_make_no_loss() -> None:
    logits = torch.zeros(2, 4, 1, 3, device=DEVICE)
    logits[1, 2, 0, 1] = float("nan")
    target = torch.ones(2, 4, 1, dtype=torch.long, device=DEVICE)
    scores, _ = score_answers(logits, target, target == 1)
    assert scores[0].isfinite().tolist() == [True, False]


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
