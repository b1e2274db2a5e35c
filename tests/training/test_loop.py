"""Runs that are stopped in any way go on as if nothing had happened."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from prlstm.training import RunFolder, loop
from prlstm.training.loop import Progress, train
from tests.training.test_trainer import run

STEPS = 60
RUNS = [run(seed=seed) for seed in (3, 5)]


@pytest.fixture(autouse=True)
def _short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "BLOCK", 10)


def weights(root: Path) -> list[bytes]:
    """The weights of both runs, and what they need to go on."""
    names = ("model.safetensors", "checkpoint.safetensors")
    return [(root / one.name / name).read_bytes() for one in RUNS for name in names]


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    root = tmp_path_factory.mktemp("straight")
    train(RUNS, STEPS, root)
    return weights(root)


def test_rows_and_reports(tmp_path: Path) -> None:
    seen: list[Progress] = []
    folders = train(RUNS, 25, tmp_path, report=seen.append)
    assert [progress.step for progress in seen] == [10, 20, 25]
    for seed, folder in enumerate(folders):
        rows = folder.metrics()
        assert [row["step"] for row in rows] == [10, 20, 25]
        assert [row["loss"] for row in rows] == [progress.loss[seed].item() for progress in seen]
        assert all(0 <= row["accuracy"] <= 1 and row["norm"] > 0 for row in rows)
        assert rows[0]["seconds"] < rows[1]["seconds"] < rows[2]["seconds"]
    # all is done: nothing more happens
    train(RUNS, 25, tmp_path, report=seen.append)
    assert len(seen) == 3


def test_in_two_parts(tmp_path: Path, straight: list[bytes]) -> None:
    train(RUNS, 17, tmp_path)
    folders = train(RUNS, STEPS, tmp_path)
    assert weights(tmp_path) == straight
    for folder in folders:
        rows = folder.metrics()
        assert [row["step"] for row in rows] == [10, 17, 20, 30, 40, 50, 60]
        seconds = [row["seconds"] for row in rows]
        assert seconds == sorted(seconds)


def test_seeds_that_stand_at_different_steps(tmp_path: Path) -> None:
    train(RUNS[:1], 20, tmp_path)
    folders = train(RUNS, STEPS, tmp_path)
    for folder in folders:
        checkpoint = folder.checkpoint()
        assert checkpoint is not None
        assert checkpoint.step == STEPS


def test_an_interrupt_saves_first(tmp_path: Path, straight: list[bytes]) -> None:
    def stop(progress: Progress) -> None:
        if progress.step == 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(RUNS, STEPS, tmp_path, report=stop)
    for one in RUNS:
        checkpoint = RunFolder.open(tmp_path / one.name).checkpoint()
        assert checkpoint is not None
        assert checkpoint.step == 30
    train(RUNS, STEPS, tmp_path)
    assert weights(tmp_path) == straight


def test_steps_that_are_done_once_more_have_one_row(tmp_path: Path, straight: list[bytes]) -> None:
    def fail(progress: Progress) -> None:
        if progress.step == 40:
            raise RuntimeError

    train(RUNS, 20, tmp_path)
    # without a checkpoint since step 20, and rows of 30 and 40 on disk
    with pytest.raises(RuntimeError):
        train(RUNS, STEPS, tmp_path, report=fail)
    folders = train(RUNS, STEPS, tmp_path)
    for folder in folders:
        assert [row["step"] for row in folder.metrics()] == [10, 20, 30, 40, 50, 60]
    assert weights(tmp_path) == straight


def test_a_loss_that_is_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(RUNS, 20, tmp_path)
    before = weights(tmp_path)
    update = loop.Trainer.update

    def poisoned(self: loop.Trainer, steps: int) -> None:
        with torch.no_grad():
            next(self.model.parameters())[1].fill_(float("nan"))
        update(self, steps)

    monkeypatch.setattr(loop.Trainer, "update", poisoned)
    with pytest.raises(FloatingPointError, match=r"s5.*: the loss is nan at step 20; the last"):
        train(RUNS, STEPS, tmp_path)
    assert weights(tmp_path) == before


CODE = f"""
import sys; from pathlib import Path
from prlstm.training import loop
from tests.training.test_trainer import run
loop.BLOCK = 10
loop.train([run(seed=3), run(seed=5)], {STEPS}, Path(sys.argv[1]), checkpoint_seconds=0.0)
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
    train(RUNS, STEPS, tmp_path)
    assert weights(tmp_path) == straight
