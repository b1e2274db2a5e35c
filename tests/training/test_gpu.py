"""Training on a CUDA device: the same batches, the same seeds, checkpoints that go on."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import prlstm
from prlstm import tasks
from prlstm.evaluation import evaluate
from prlstm.kernels import operator
from prlstm.kernels.tables import TableLayout
from prlstm.training import Curriculum, Request, RunConfig, Schedule, Trainer, score, train
from prlstm.training.checkpoint import restore, take
from prlstm.tree import Words
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
    runs = [run(model, "stack_manipulation", seed=seed, precision="float64") for seed in (3, 5)]
    # of products in float64 some cannot be captured
    together = Trainer(runs, "cuda", capture=False)
    together.update(20)
    metrics, weights = together.read_metrics(), [c.weights for c in take(together)]
    on_cpu = Trainer(runs, "cpu")
    on_cpu.update(20)
    # Adam's first steps take the sign of what may be rounding: it grows from step to step
    assert_rel("CPU", metrics.loss, on_cpu.read_metrics().loss, 1e-7)
    for row, one in enumerate(runs):
        alone = Trainer([one], "cuda", capture=False)
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
        # the first step of a length makes what later ones need
        fixed = Curriculum(kind="fixed", longest=7)
        runs = [run(model, seed=seed, curriculum=fixed) for seed in seeds]
        trainer = Trainer(runs, "cuda", capture=False)
        trainer.update(3)
        torch.cuda.set_sync_debug_mode("error")
        try:
            trainer.update(3)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        assert trainer.read_metrics().loss.shape == (6, len(seeds))


@pytest.mark.parametrize("model", SMALL)
@pytest.mark.parametrize("seeds", [[3], [3, 5]])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_captured_steps_are_those_made_one_operation_at_a_time(
    model: str, seeds: list[int], precision: str
) -> None:
    """Every length comes several times, the rate changes from step to step, dropout is on."""
    runs = [
        run(
            model, "stack_manipulation", seed=seed, precision=precision, average=0.9,
            curriculum=Curriculum(longest=3), schedule=Schedule(kind="cosine", decay_steps=60),
        )
        for seed in seeds
    ]  # fmt: skip
    captured, plain = Trainer(runs, "cuda"), Trainer(runs, "cuda", capture=False)
    for trainer in (captured, plain):
        trainer.update(15)
        # what is read, scored and resumed in between is that of now
        evaluate(trainer.model, range(5, 30), 64)
        restore(trainer, take(trainer))
        trainer.update(15)
    assert_rel("loss", captured.read_metrics().loss, plain.read_metrics().loss, 1e-4)
    for one, other in zip(take(captured), take(plain), strict=True):
        for part, tensors in one.parts.items():
            for name, tensor in tensors.items():
                assert_rel(f"{part} {name}", tensor, other.parts[part][name], 1e-4)


def test_captured_steps_with_blocks_that_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words so long, and so many, that tables go beyond the leaves: equal bits all the same."""
    lengths, seeds, batch = (33, 40, 12, 40, 33, 5), 10, 128
    monkeypatch.setattr(Curriculum, "length", lambda _, step: lengths[step % len(lengths)])
    plain_layout, tops = operator.lay_out_tables, {}

    def lay_out_tables(words: Words, tokens: int, count: int, *numbers: int) -> TableLayout:
        made = plain_layout(words, tokens, count, *numbers)
        if numbers[:2] == (batch, seeds):
            tops[words.length] = made.top
        return made

    monkeypatch.setattr(operator, "lay_out_tables", lay_out_tables)
    runs = [
        RunConfig(
            task="parity_check", hyper_parameters={"hidden_size": 64}, seed=seed,
            batch_size=batch, precision="bfloat16",
        )
        for seed in range(seeds)
    ]  # fmt: skip
    said: list[str] = []
    captured = Trainer(runs, "cuda", say=said.append)
    plain = Trainer(runs, "cuda", capture=False)
    for trainer in (captured, plain):
        trainer.update(24)
    assert said == [], "steps were not captured"
    assert set(tops) == set(lengths), "sweeps of all seeds at once are not seen"
    assert min(tops[33], tops[40]) >= 2
    assert captured.read_metrics().loss.equal(plain.read_metrics().loss)
    for one, other in zip(take(captured), take(plain), strict=True):
        assert one.step == other.step == 24
        for name, weight in one.weights.items():
            assert weight.equal(other.weights[name]), name


def test_a_new_length_is_captured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = Trainer([run(curriculum=Curriculum(longest=3))], "cuda")
    trainer.update(20)

    def fails(length: int) -> None:
        raise AssertionError(f"length {length} was not captured")

    monkeypatch.setattr(trainer, "_update_once", fails)
    trainer.update(20)
    assert trainer.read_metrics().loss.isfinite().all()


@pytest.mark.parametrize(
    "refused", [lambda made: made.cpu(), lambda made: torch.cuda.synchronize()]
)
def test_what_cannot_be_captured_runs_all_the_same(
    refused: Callable[[torch.Tensor], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    runs = [run(curriculum=Curriculum(longest=3))]
    trainer, plain = Trainer(runs, "cuda", say=said.append), Trainer(runs, "cuda", capture=False)
    once = trainer._update_once

    def waits(length: int) -> torch.Tensor:
        made = once(length)
        refused(made)
        return made

    monkeypatch.setattr(trainer, "_update_once", waits)
    for one in (trainer, plain):
        one.update(10)
    assert len(said) == 1
    assert said[0].startswith("steps are not captured, and so slower: ")
    assert trainer.read_metrics().loss.equal(plain.read_metrics().loss)
    # random numbers go on, and captures
    assert torch.rand(3, device="cuda").isfinite().all()
    again = Trainer(runs, "cuda")
    again.update(20)
    assert again.read_metrics().loss.isfinite().all()


@pytest.mark.parametrize("model", ["pr_lstm", "lstm", "transformer_encoder"])
@pytest.mark.parametrize("precision", ["tf32", "bfloat16"])
def test_other_precisions(model: str, precision: str) -> None:
    """Close to float32 over the first steps, not equal, and PyTorch's settings are left alone."""
    matmul = torch.backends.cuda.matmul
    before = matmul.fp32_precision
    losses = {}
    for name in ("float32", precision):
        trainer = Trainer(
            [run(model, "stack_manipulation", seed=seed, precision=name) for seed in (3, 5)], "cuda"
        )
        trainer.update(10)
        losses[name] = trainer.read_metrics().loss
    assert matmul.fp32_precision == before
    assert not losses[precision].equal(losses["float32"])
    assert_rel("loss", losses[precision], losses["float32"], 0.05)


def test_runs_are_trained_and_scored(tmp_path: Path) -> None:
    configs = [run(seed=seed, average=0.9) for seed in (3, 5)]
    request = Request(steps=120, validate_every=60, samples=64)
    folders = train(configs, request, tmp_path, device="cuda")
    for weights in ("last", "best", "average"):
        there = score(folders, weights, range(5, 30), 64, device="cuda")
        for folder, counts in zip(folders, there, strict=True):
            model = prlstm.load(folder.path, weights=weights)
            (here,) = evaluate(model, range(5, 30), 64)
            assert (here.correct - counts.correct).abs().sum() <= 3


def test_scores_are_those_of_the_cpu() -> None:
    runs = [run(task="bucket_sort", seed=seed, precision="float64") for seed in (1, 2)]
    trainer = Trainer(runs, "cuda", capture=False)
    trainer.update(30)
    there = evaluate(trainer.model, range(5, 60), 64)
    here = evaluate(trainer.model.cpu(), range(5, 60), 64)
    for one, other in zip(there, here, strict=True):
        assert one.total.equal(other.total)
        assert (one.correct - other.correct).abs().sum() <= 2
