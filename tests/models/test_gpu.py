"""Models on a CUDA device: the same function, cuDNN where it fits, nothing that waits."""

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from prlstm import models, tasks
from tests.compare import TOLERANCE, assert_rel
from tests.models.test_laws import CASES, ON_A_TAPE, small

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def _needs_a_gpu() -> None:
    assert torch.cuda.is_available(), "these tests need a CUDA device"


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mixed", [False, True])
def test_cuda_is_the_cpu(case: str, mixed: bool) -> None:
    here, there = small(case).train(), small(case).train().cuda()
    task = here.task
    for model in (here, there):
        for module in model.modules():
            if hasattr(module, "share"):
                module.share = 0.0
    lengths = [12, 3, 1, 7] if mixed else [12] * 4
    batch = task.sample(lengths=lengths, generator=torch.Generator())
    target = None if case in ON_A_TAPE else batch.target
    want = here(batch.input, batch.lengths, target)
    moved = batch.to("cuda")
    got = there(moved.input, moved.lengths, None if target is None else moved.target)
    forward, backward = TOLERANCE[torch.float64]
    assert_rel("logits", got.cpu()[batch.loss_mask], want[batch.loss_mask], forward)
    tasks.loss(want, batch.target, batch.loss_mask).backward()
    tasks.loss(got, moved.target, moved.loss_mask).backward()
    gradients = {name: weight.grad for name, weight in there.named_parameters()}
    for name, weight in here.named_parameters():
        assert weight.grad is not None
        got_gradient = gradients[name]
        assert got_gradient is not None
        assert_rel(name, got_gradient, weight.grad, backward)


@pytest.mark.parametrize("name", ["rnn", "lstm"])
@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning")
def test_a_single_seed_runs_in_cudnn(name: str) -> None:
    model = models.build(name, "parity_check", device="cuda")
    words = torch.randint(2, (4, 20), device="cuda")
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        model(words).sum().backward()
    assert "aten::_cudnn_rnn" in {event.key for event in recorded.key_averages()}
    with torch.backends.cudnn.flags(allow_tf32=False):
        fused = model(words)
    model.network.fused = False
    assert_rel("cuDNN", fused, model(words), 1e-5)


@pytest.mark.parametrize("name", models.names())
def test_gradients_in_evaluation_mode(name: str) -> None:
    model = models.build(name, "reverse_string", device="cuda").eval()
    words = torch.randint(2, (2, 6), device="cuda")
    model(words, target=words).sum().backward()
    assert all(weight.grad is not None for weight in model.parameters())


def test_building_leaves_the_random_numbers_of_the_gpu_alone() -> None:
    state = torch.cuda.get_rng_state()
    models.build("lstm", "parity_check", seed=3, device="cuda")
    assert torch.cuda.get_rng_state().equal(state)


@pytest.mark.parametrize("name", models.names())
# PyTorch says that it does not detect all of them
@pytest.mark.filterwarnings("ignore:Synchronization debug mode:UserWarning")
def test_nothing_waits(name: str) -> None:
    """Forward and backward, for equal and for mixed lengths, alone and stacked."""
    task = tasks.get("reverse_string")
    alone = models.build(name, task, device="cuda")
    stacked = models.Stacked([alone, alone]).cuda()
    batch = task.sample(lengths=[12, 3, 1, 7], device="cuda")
    # libraries set themselves up on the first call
    for _ in range(2):
        for lengths in (None, batch.lengths):
            alone(batch.input, lengths, batch.target).sum().backward()
        torch.cuda.set_sync_debug_mode("error")
        try:
            for lengths in (None, batch.lengths):
                alone(batch.input, lengths, batch.target).sum().backward()
                many = None if lengths is None else lengths.expand(2, 4).contiguous()
                words, target = (t.expand(2, *t.shape) for t in (batch.input, batch.target))
                stacked(words, many, target).sum().backward()
        finally:
            torch.cuda.set_sync_debug_mode("default")
