"""Many seeds at once are many seeds alone; lengths and rates are those of the protocol."""

import math
import re
from dataclasses import replace

import pytest
import torch

from prlstm import tasks
from prlstm.training import Curriculum, RunConfig, Schedule, Trainer
from prlstm.training.checkpoint import restore, take
from tests.compare import TOLERANCE, assert_rel
from tests.tasks.chance import assert_likely

SMALL: dict[str, dict[str, object]] = {
    "pr_lstm": {"hidden_size": 8},
    "pr_gru": {"hidden_size": 8},
    "lstm": {"hidden_size": 8},
    "tape_rnn": {"hidden_size": 8},
    "transformer_encoder": {
        "embedding_size": 8, "num_layers": 2, "num_heads": 2, "dropout": 0.2,
    },
    "transformer": {"embedding_size": 8, "num_layers": 1, "num_heads": 2, "dropout": 0.2},
}  # fmt: skip


def run(model: str = "pr_lstm", task: str = "parity_check", **more: object) -> RunConfig:
    return RunConfig(task=task, model=model, hyper_parameters=SMALL[model], batch_size=8, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("model", SMALL)
@pytest.mark.parametrize("task", ["parity_check", "stack_manipulation"])
@pytest.mark.parametrize("precision", ["float64", "float32", "bfloat16"])
def test_stacked_seeds_are_trained_as_alone(model: str, task: str, precision: str) -> None:
    runs = [run(model, task, seed=seed, precision=precision) for seed in (3, 5, 9)]
    together = Trainer(runs)
    together.update(20)
    metrics, models = together.read_metrics(), together.models()
    tolerance = {"float64": 1e-9, "float32": 1e-3, "bfloat16": 0.1}[precision]
    for row, one in enumerate(runs):
        alone = Trainer([one])
        alone.update(20)
        lone = alone.read_metrics()
        assert_rel("loss", metrics.loss[:, row], lone.loss[:, 0], tolerance)
        assert_rel("norm", metrics.norm[:, row], lone.norm[:, 0], tolerance)
        assert metrics.total[:, row].equal(lone.total[:, 0])
        if precision != "float64":
            # where a gradient is nothing but rounding, Adam makes whole steps of it
            continue
        weights = alone.models()[0].state_dict()
        for name, weight in models[row].state_dict().items():
            assert_rel(name, weight, weights[name], tolerance)


@pytest.mark.parametrize("clip", [1.0, 0.05])
def test_an_update_is_that_of_the_protocol(clip: float) -> None:
    """Clipped, then Adam: by hand, beside the trainer."""
    config = run(task="stack_manipulation", seed=4, clip=clip, precision="float64")
    trainer = Trainer([config])
    (model,) = trainer.models()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for step in range(5):
        batch = trainer.batch(step)
        assert batch.input.shape == (8, trainer.config.curriculum.length(step))
        assert batch.target.equal(trainer.task.target(batch.input))
        loss = tasks.loss(model(batch.input), batch.target)
        optimizer.zero_grad()
        loss.backward()
        gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
        norm = math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients))
        for gradient in gradients:
            gradient /= max(1.0, norm / clip)
        optimizer.step()
        trainer.update()
        metrics = trainer.read_metrics()
        assert norm > 0.05
        assert metrics.first_step == step
        assert metrics.loss.item() == pytest.approx(loss.item(), rel=1e-12)
        assert metrics.norm.item() == pytest.approx(norm, rel=1e-12)
    for mine, theirs in zip(trainer.models()[0].parameters(), model.parameters(), strict=True):
        assert_rel("weight", mine, theirs, TOLERANCE[torch.float64][1])


def test_metrics_count_what_is_right() -> None:
    trainer = Trainer([run(task="binary_addition")])
    batch = trainer.batch(0)
    (model,) = trainer.models()
    with torch.no_grad():
        correct, total = tasks.count(model(batch.input), batch.target, batch.mask)
    trainer.update(3)
    metrics = trainer.read_metrics()
    assert metrics.loss.shape == metrics.correct.shape == (3, 1)
    assert (metrics.correct[0].item(), metrics.total[0].item()) == (correct.sum(), total.sum())


def test_runs_must_differ_in_seeds_alone() -> None:
    with pytest.raises(ValueError, match="expected runs that differ in their seeds alone"):
        Trainer([run(), run("lstm")])


class TestCurriculum:
    def test_uniform(self) -> None:
        drawn = [Curriculum().length(step) for step in range(20_000)]
        assert_likely([drawn.count(length) for length in range(1, 41)], [1 / 40] * 40)

    def test_fixed(self) -> None:
        assert {Curriculum(kind="fixed", longest=7).length(step) for step in range(50)} == {7}

    def test_increasing(self) -> None:
        curriculum = Curriculum(kind="increasing", longest=5, every=100)
        drawn = [curriculum.length(step) for step in range(5000)]
        assert [max(drawn[100 * k : 100 * (k + 1)]) for k in range(7)] == [1, 2, 3, 4, 5, 5, 5]
        assert_likely([drawn[500:].count(length) for length in range(1, 6)], [1 / 5] * 5)

    def test_reverse_exponential(self) -> None:
        curriculum = Curriculum(kind="reverse_exponential", longest=10, tau=0.8)
        drawn = [curriculum.length(step) for step in range(20_000)]
        weights = [0.8**length for length in range(1, 11)]
        chances = [weight / sum(weights) for weight in weights]
        assert_likely([drawn.count(length) for length in range(1, 11)], chances)

    def test_lengths_are_shared_by_all_seeds(self) -> None:
        batches = [Trainer([run(seed=seed)]).batch(11).input for seed in (1, 2)]
        assert batches[0].shape == batches[1].shape
        assert not batches[0].equal(batches[1])

    @pytest.mark.parametrize(
        ("chosen", "message"),
        [
            ({"kind": "x"}, "kind='x': expected one of uniform, fixed"),
            ({"longest": 0}, "longest=0: expected an integer >= 1"),
            ({"every": 0}, "every=0: expected an integer >= 1"),
            ({"tau": 1.0}, "tau=1.0: expected a number with 0 < tau < 1"),
        ],
    )
    def test_what_is_refused(self, chosen: dict[str, object], message: str) -> None:
        with pytest.raises(ValueError, match=re.escape(message)):
            Curriculum(**chosen)  # type: ignore[arg-type]


class TestSchedule:
    def test_constant(self) -> None:
        assert {Schedule().at(step) for step in (0, 1, 10**6)} == {1e-3}

    def test_warm_up(self) -> None:
        rates = [Schedule(rate=1.0, warm_up=4).at(step) for step in range(6)]
        assert rates == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]

    def test_cosine(self) -> None:
        schedule = Schedule(rate=2.0, kind="cosine", decay_steps=100)
        rates = [schedule.at(step) for step in (0, 50, 100, 200)]
        assert rates == pytest.approx([2.0, 1.0, 0.0, 0.0], abs=1e-12)

    def test_the_rate_is_used(self) -> None:
        trainer = Trainer([run(schedule=Schedule(rate=1.0, kind="cosine", decay_steps=1))])
        trainer.update(1)
        before = [weight.clone() for weight in trainer.model.parameters()]
        # the rate of all later steps is zero
        trainer.update(3)
        after = trainer.model.parameters()
        assert all(one.equal(other) for one, other in zip(after, before, strict=True))

    @pytest.mark.parametrize(
        ("chosen", "message"),
        [
            ({"rate": 0.0}, "rate=0.0: expected a finite number > 0"),
            ({"rate": float("nan")}, "rate=nan: expected a finite number > 0"),
            ({"kind": "x"}, "kind='x': expected 'constant' or 'cosine'"),
            ({"warm_up": -1}, "warm_up=-1: expected an integer >= 0"),
            ({"decay_steps": 0}, "decay_steps=0: expected an integer >= 1"),
        ],
    )
    def test_what_is_refused(self, chosen: dict[str, object], message: str) -> None:
        with pytest.raises(ValueError, match=re.escape(message)):
            Schedule(**chosen)  # type: ignore[arg-type]


@pytest.mark.parametrize("seeds", [[3], [3, 5]])
def test_an_average_follows_the_weights(seeds: list[int]) -> None:
    """By hand, beside the trainer: it forgets sooner in the first steps."""
    runs = [run(seed=seed, precision="float64", average=0.6) for seed in seeds]
    trainer, plain = Trainer(runs), Trainer([replace(one, average=0.0) for one in runs])
    assert plain.average is None
    want = [weight.detach().clone() for weight in plain.model.parameters()]
    for kept in (1 / 10, 2 / 11, 3 / 12, 4 / 13, 5 / 14, 6 / 15, 7 / 16, 8 / 17, 9 / 18, 10 / 19,
                 11 / 20, 12 / 21, 13 / 22, 0.6, 0.6):  # fmt: skip
        trainer.update()
        plain.update()
        weights = list(plain.model.parameters())
        want = [kept * w + (1 - kept) * new.detach() for w, new in zip(want, weights, strict=True)]
    assert trainer.average is not None
    for average, expected in zip(trainer.average.parameters(), want, strict=True):
        torch.testing.assert_close(average.detach(), expected)
    # it changes nothing else
    for mine, other in zip(trainer.model.parameters(), plain.model.parameters(), strict=True):
        assert mine.equal(other)
    resumed = Trainer(runs)
    restore(resumed, take(trainer))
    resumed.update(3)
    trainer.update(3)
    for one, other in zip(take(resumed), take(trainer), strict=True):
        for name, tensor in one.parts["average"].items():
            assert tensor.equal(other.parts["average"][name])


def test_the_rate_of_a_step_is_that_of_the_schedule() -> None:
    config = run(schedule=Schedule(rate=1.0, warm_up=4))
    trainer = Trainer([config])
    rates = []
    for _ in range(3):
        trainer.update()
        rates.append(trainer.optimizer.adam.param_groups[0]["lr"])
    resumed = Trainer([config])
    restore(resumed, take(trainer))
    resumed.update()
    assert [*rates, resumed.optimizer.adam.param_groups[0]["lr"]] == [0.25, 0.5, 0.75, 1.0]


class TestConfig:
    def test_names_are_those_of_the_content(self) -> None:
        one = RunConfig(task="parity_check")
        assert one.name.startswith("parity_check-pr_lstm-")
        assert one.name.endswith("-s0")
        # a default that is written out is the same run
        assert RunConfig(task="parity_check", hyper_parameters={"refine": 1}).name == one.name
        others = [
            one.with_seed(1),
            RunConfig(task="even_pairs"),
            RunConfig(task="parity_check", model="pr_rnn"),
            RunConfig(task="parity_check", hyper_parameters={"refine": 2}),
            RunConfig(task="parity_check", batch_size=64),
            RunConfig(task="parity_check", clip=2.0),
            RunConfig(task="parity_check", curriculum=Curriculum(longest=20)),
            RunConfig(task="parity_check", schedule=Schedule(rate=3e-3)),
        ]
        assert len({one.name, *(other.name for other in others)}) == 9
        for config in (one, *others):
            again = RunConfig.from_json(config.as_json())
            assert again == config
            assert again.name == config.name

    @pytest.mark.parametrize(
        ("chosen", "message"),
        [
            ({"task": "parity"}, "name='parity': no such task"),
            ({"model": "pr"}, "name='pr': no such model"),
            ({"hyper_parameters": {"hidden": 3}}, "hidden=3: pr_lstm has no such hyper-parameter"),
            ({"seed": -1}, "seed=-1: expected an integer >= 0"),
            ({"batch_size": 0}, "batch_size=0: expected an integer >= 1"),
            ({"clip": 0.0}, "clip=0.0: expected a finite number > 0"),
        ],
    )
    def test_what_is_refused(self, chosen: dict[str, object], message: str) -> None:
        with pytest.raises(ValueError, match=re.escape(message)):
            RunConfig(**{"task": "parity_check", **chosen})  # type: ignore[arg-type]
