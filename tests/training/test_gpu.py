"""Training on a CUDA device: the same batches, the same seeds, checkpoints that go on."""

import pytest
import torch

from prlstm import tasks
from prlstm.evaluation import evaluate
from prlstm.training import Trainer
from prlstm.training.checkpoint import restore, take
from tests.compare import assert_rel
from tests.training.test_trainer import SMALL, run

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def _needs_a_gpu() -> None:
    assert torch.cuda.is_available(), "these tests need a CUDA device"


@pytest.mark.parametrize("task", tasks.names())
def test_the_same_batches_as_on_the_cpu(task: str) -> None:
    here, there = (Trainer([run(task=task)], device) for device in ("cpu", "cuda"))
    for step in (0, 1, 77):
        assert there.batch(step).input.cpu().equal(here.batch(step).input)
        assert there.batch(step).target.cpu().equal(here.batch(step).target)


@pytest.mark.parametrize("model", SMALL)
def test_stacked_seeds_are_trained_as_alone(model: str) -> None:
    runs = [run(model, "stack_manipulation", seed=seed) for seed in (3, 5)]
    together = Trainer(runs, "cuda", torch.float64)
    together.update(20)
    metrics, weights = together.read_metrics(), [c.weights for c in take(together)]
    on_cpu = Trainer(runs, "cpu", torch.float64)
    on_cpu.update(20)
    assert_rel("CPU", metrics.loss, on_cpu.read_metrics().loss, 1e-9)
    for row, one in enumerate(runs):
        alone = Trainer([one], "cuda", torch.float64)
        alone.update(20)
        assert_rel("loss", metrics.loss[:, row], alone.read_metrics().loss[:, 0], 1e-9)
        for name, weight in take(alone)[0].weights.items():
            assert_rel(name, weights[row][name], weight, 1e-8)


@pytest.mark.parametrize("model", SMALL)
@pytest.mark.parametrize("seeds", [[3], [3, 5]])
def test_going_on_from_a_checkpoint(model: str, seeds: list[int]) -> None:
    runs = [run(model, "stack_manipulation", seed=seed) for seed in seeds]
    straight, cut, resumed = (Trainer(runs, "cuda") for _ in range(3))
    straight.update(15)
    cut.update(7)
    restore(resumed, take(cut))
    resumed.update(8)
    for one, other in zip(take(resumed), take(straight), strict=True):
        for name, weight in one.weights.items():
            assert_rel(name, weight, other.weights[name], 1e-5)


# PyTorch says that it does not detect all of them
@pytest.mark.filterwarnings("ignore:Synchronization debug mode:UserWarning")
@pytest.mark.parametrize("model", SMALL)
def test_an_update_waits_for_nothing(model: str) -> None:
    for seeds in ([0], [0, 1]):
        trainer = Trainer([run(model, seed=seed) for seed in seeds], "cuda")
        trainer.update(3)
        torch.cuda.set_sync_debug_mode("error")
        try:
            trainer.update(3)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        assert trainer.read_metrics().loss.shape == (6, len(seeds))


def test_scores_are_those_of_the_cpu() -> None:
    trainer = Trainer(
        [run(task="bucket_sort", seed=seed) for seed in (1, 2)], "cuda", torch.float64
    )
    trainer.update(30)
    there = evaluate(trainer.model, range(5, 60), 64)
    here = evaluate(trainer.model.cpu(), range(5, 60), 64)
    for one, other in zip(there, here, strict=True):
        assert one.total.equal(other.total)
        assert (one.correct - other.correct).abs().sum() <= 2
