"""Runs that are stopped in any way go on as if nothing had happened."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load

import prlstm
from prlstm.evaluation import LengthCounts, evaluate
from prlstm.training import Event, Request, RunFolder, loop
from prlstm.training.events import Begun, Block, Saved, Stepped, Stopped, Validated
from prlstm.training.loop import train
from prlstm.training.runs import METRICS, VALIDATION
from tests.training.test_trainer import run

STEPS = 60
RUNS = [run(seed=seed, average=0.9) for seed in (3, 5)]
FILES = ("model", "checkpoint", "best", "average")


def asked(steps: int = STEPS, **more: object) -> Request:
    return Request(steps=steps, **{"validate_every": 30} | more)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "BLOCK", 10)
    monkeypatch.setattr(loop, "VALIDATED", range(5, 9))


def kept(root: Path) -> list[bytes]:
    """The weights of both runs, the best ones, and what they need to go on."""
    paths = [root / one.name / f"{name}.safetensors" for one in RUNS for name in FILES]
    return [path.read_bytes() for path in paths]


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    root = tmp_path_factory.mktemp("straight")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "VALIDATED", range(5, 9))
        train(RUNS, asked(), root)
    return kept(root)


def test_rows_and_events(tmp_path: Path) -> None:
    seen: list[Event] = []
    folders = train(RUNS, asked(25, validate_every=20), tmp_path, report=seen.append)
    assert isinstance(seen[0], Begun)
    assert (seen[0].step, seen[0].steps) == (0, 25)
    assert [event.step for event in seen if isinstance(event, Stepped)] == list(range(1, 26))
    blocks = [event for event in seen if isinstance(event, Block)]
    assert [block.step for block in blocks] == [10, 20, 25]
    validated = [event for event in seen if isinstance(event, Validated)]
    assert [event.step for event in validated] == [20, 20, 25, 25]
    assert seen[-1] == Saved(25)
    for seed, folder in enumerate(folders):
        rows = folder.rows(METRICS)
        assert [row["step"] for row in rows] == [10, 20, 25]
        assert [row["loss"] for row in rows] == [block.loss[seed].item() for block in blocks]
        assert all(0 <= row["accuracy"] <= 1 and row["norm"] > 0 for row in rows)
        assert rows[0]["seconds"] < rows[1]["seconds"] < rows[2]["seconds"]
        validations = folder.rows(VALIDATION)
        assert [row["step"] for row in validations] == [20, 25]
        best = max(validations, key=lambda row: (row["accuracy"], row["step"]))
        assert vars(folder.weights("best")) == best
        assert folder.request() == asked(25, validate_every=20)
    # all is done: nothing more happens
    seen.clear()
    train(RUNS, asked(25, validate_every=20), tmp_path, report=seen.append)
    assert not seen


def test_the_best_weights_are_those_that_were_validated(tmp_path: Path) -> None:
    (folder,) = train(RUNS[:1], asked(30), tmp_path)
    first = (folder.path / "best.safetensors").read_bytes()
    model = prlstm.load(folder.path, weights="best")
    last = prlstm.load(folder.path)
    # validated at the last step: they are the last ones
    assert all(
        weight.equal(other)
        for weight, other in zip(model.parameters(), last.parameters(), strict=True)
    )
    # never better than that: they stay
    folder.save_best(folder.checkpoint(), 1.5)  # type: ignore[arg-type]
    first = (folder.path / "best.safetensors").read_bytes()
    train(RUNS[:1], asked(60), tmp_path)
    assert (folder.path / "best.safetensors").read_bytes() == first
    best = folder.weights("best")
    assert best is not None
    assert (best.step, best.accuracy) == (30, 1.5)


def test_the_best_weights_are_each_runs_own(tmp_path: Path) -> None:
    for folder in train(RUNS, asked(30), tmp_path):
        best, last = (prlstm.load(folder.path, weights=which) for which in ("best", "last"))
        for weight, other in zip(best.parameters(), last.parameters(), strict=True):
            assert weight.equal(other)


def test_validation_is_on_words_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those of training, nor those of the score."""
    monkeypatch.undo()
    seen = []

    def see(model: object, lengths: range, samples: int, **more: object) -> list[LengthCounts]:
        seen.append((lengths, samples, more))
        return evaluate(model, range(5, 9), samples, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "evaluate", see)
    train(RUNS[:1], asked(3), tmp_path)
    assert seen == [(range(41, 101), 64, {"seed": 2, "split": "validation"})]


def test_a_validation_that_is_missing_is_made_up_for(tmp_path: Path) -> None:
    """For the run that lacks it, and for no other."""
    train(RUNS[:1], asked(30), tmp_path)
    train(RUNS[1:], asked(30, validate_every=0), tmp_path)
    seen: list[Event] = []
    folders = train(RUNS, asked(30), tmp_path, report=seen.append)
    validated = [event for event in seen if isinstance(event, Validated)]
    assert [(event.folder, event.step) for event in validated] == [(folders[1], 30)]
    for folder in folders:
        assert [row["step"] for row in folder.rows(VALIDATION)] == [30]


def test_weights_that_were_not_written_are_made_up_for(tmp_path: Path) -> None:
    """A kill may come between a checkpoint and its weights."""
    (folder,) = train(RUNS[:1], asked(20), tmp_path)
    older = (folder.path / "model.safetensors").read_bytes()
    train(RUNS[:1], asked(40), tmp_path)
    newer = (folder.path / "model.safetensors").read_bytes()
    (folder.path / "model.safetensors").write_bytes(older)
    train(RUNS[:1], asked(40), tmp_path)
    assert (folder.path / "model.safetensors").read_bytes() == newer != older


def test_an_interrupt_while_saving_is_not_lost(tmp_path: Path) -> None:
    def stop(event: Event) -> None:
        if event == Saved(STEPS):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(RUNS, asked(), tmp_path, report=stop)


def test_in_two_parts(tmp_path: Path, straight: list[bytes]) -> None:
    train(RUNS, asked(17, validate_every=0), tmp_path)
    folders = train(RUNS, asked(), tmp_path)
    assert kept(tmp_path) == straight
    for folder in folders:
        rows = folder.rows(METRICS)
        assert [row["step"] for row in rows] == [10, 17, 20, 30, 40, 50, 60]
        seconds = [row["seconds"] for row in rows]
        assert seconds == sorted(seconds)


def test_seeds_that_stand_at_different_steps(tmp_path: Path) -> None:
    train(RUNS[:1], asked(20), tmp_path)
    for folder in train(RUNS, asked(), tmp_path):
        assert folder.step() == STEPS


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("at", [27, 30, 60])
def test_an_interrupt_saves_first(
    tmp_path: Path, straight: list[bytes], number: signal.Signals, at: int
) -> None:
    """In the midst of a block, where a validation would follow, and at the very end."""

    def stop(event: Event) -> None:
        if event == Stepped(at):
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt):
        train(RUNS, asked(), tmp_path, report=stop)
    assert signal.getsignal(number) is before
    for one in RUNS:
        folder = RunFolder.open(tmp_path / one.name)
        assert folder.step() == folder.rows(METRICS)[-1]["step"] == at
        assert [row["step"] for row in folder.rows(VALIDATION)] == [30] * (at == 60)
    train(RUNS, asked(), tmp_path)
    assert kept(tmp_path) == straight


def test_a_second_interrupt_does_not_wait(tmp_path: Path) -> None:
    def stop(event: Event) -> None:
        if event == Stepped(27):
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(RUNS, asked(), tmp_path, report=stop)
    assert RunFolder.open(tmp_path / RUNS[0].name).step() is None


def test_steps_that_are_done_once_more_have_one_row(tmp_path: Path, straight: list[bytes]) -> None:
    def fail(event: Event) -> None:
        if isinstance(event, Block) and event.step == 40:
            raise RuntimeError

    train(RUNS, asked(20), tmp_path)
    # without a checkpoint since step 20, and rows of 30 and 40 on disk
    with pytest.raises(RuntimeError):
        train(RUNS, asked(), tmp_path, report=fail)
    folders = train(RUNS, asked(), tmp_path)
    for folder in folders:
        assert [row["step"] for row in folder.rows(METRICS)] == [10, 20, 30, 40, 50, 60]
        assert [row["step"] for row in folder.rows(VALIDATION)] == [20, 30, 60]
    # but for the best ones: it was validated at step 20 too
    assert [b for n, b in enumerate(kept(tmp_path)) if n % 4 != 2] == [
        b for n, b in enumerate(straight) if n % 4 != 2
    ]


def poison(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Spoil the weights of the second run."""
    update = loop.Trainer.update

    def poisoned(self: loop.Trainer) -> None:
        if self.step == after and len(self.runs) == 2:
            with torch.no_grad():
                next(self.model.parameters())[1].fill_(float("nan"))
        update(self)

    monkeypatch.setattr(loop.Trainer, "update", poisoned)


def test_a_loss_that_is_no_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, straight: list[bytes]
) -> None:
    """The run stops, and keeps what it was; the other one goes on to its end."""
    train(RUNS, asked(20), tmp_path)
    before = kept(tmp_path)
    poison(monkeypatch, 24)
    seen: list[Event] = []
    message = r"s5: the loss is nan at step 24; what was saved before it is kept"
    with pytest.raises(FloatingPointError, match=message):
        train(RUNS, asked(), tmp_path, report=seen.append)
    (stopped,) = [event for event in seen if isinstance(event, Stopped)]
    assert stopped.failed
    assert kept(tmp_path)[4:] == before[4:]
    folder = RunFolder.open(tmp_path / RUNS[1].name)
    assert [row["step"] for row in folder.rows(METRICS)] == [10, 20]
    other = RunFolder.open(tmp_path / RUNS[0].name)
    assert other.step() == STEPS
    for name, weight in other.checkpoint().weights.items():  # type: ignore[union-attr]
        reference = load(straight[1])[f"weights/{name}"]
        torch.testing.assert_close(weight, reference, rtol=1e-3, atol=1e-5)
    # and once more, when all of them fail
    monkeypatch.setattr(loop.Trainer, "update", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        train(RUNS, asked(), tmp_path)


def test_until_solved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is solved leaves, those that are not go on, each as it would have alone."""
    monkeypatch.setattr("prlstm.training.runs.SOLVED", 0.55)
    request = asked(120, until_solved=True, validate_every=20)
    seen: list[Event] = []
    folders = train(RUNS, request, tmp_path / "together", report=seen.append)
    stopped = {event.folder.path.name: event.step for event in seen if isinstance(event, Stopped)}
    for folder in folders:
        rows = folder.rows(VALIDATION)
        assert all(row["accuracy"] < 0.55 for row in rows[:-1])
        last = stopped.get(folder.path.name, 120)
        assert folder.step() == rows[-1]["step"] == last
        (alone,) = train([folder.config], request, tmp_path / "alone")
        assert alone.step() == last
    # they stay where they are
    seen.clear()
    train(RUNS, request, tmp_path / "together", report=seen.append)
    assert not any(isinstance(event, Stepped) for event in seen if stopped)
    assert len(stopped) == 2


CODE = f"""
import sys; from pathlib import Path
from prlstm.training import Request, loop
from tests.training.test_trainer import run
loop.BLOCK, loop.VALIDATED = 10, range(5, 9)
request = Request(steps={STEPS}, validate_every=30, checkpoint_seconds=0.0)
loop.train([run(seed=s, average=0.9) for s in (3, 5)], request, Path(sys.argv[1]))
"""


def rows_written(root: Path) -> int:
    path = root / RUNS[0].name / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kill_at_work(root: Path, delay: float) -> bool:
    """Train in another process, and kill it soon after its first row; whether it was at work."""
    before = rows_written(root)
    with subprocess.Popen([sys.executable, "-c", CODE, str(root)]) as process:
        while process.poll() is None and rows_written(root) <= before:
            time.sleep(0.002)
        time.sleep(delay)
        process.kill()
    return process.returncode == -signal.SIGKILL


def test_killed_runs_go_on(tmp_path: Path, straight: list[bytes]) -> None:
    chance = random.Random(0)
    # a first kill before any checkpoint may be, the second one later
    assert kill_at_work(tmp_path, 0.1 * chance.random())
    kill_at_work(tmp_path, 0.2 * chance.random())
    train(RUNS, asked(), tmp_path)
    assert kept(tmp_path) == straight
