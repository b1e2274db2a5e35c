"""SIGKILL at any moment: the resumed run ends with equal bytes."""

import multiprocessing
import random
import time
from pathlib import Path

import pytest

from prlstm.training import Request, RunFolder, loop
from prlstm.training.runs import METRICS
from tests.training.test_loop import RUNS, asked, kept

KILLS, KILLS_PER_RUN = 200, 5


def at_work(root: Path, checkpoint_seconds: float) -> None:
    """What is killed: in a process of its own."""
    import torch

    torch.set_num_threads(1)
    loop.BLOCK, loop.VALIDATED = 10, range(5, 9)
    request = Request(steps=60, validate_every=30, checkpoint_seconds=checkpoint_seconds)
    loop.train(RUNS, request, root)


@pytest.mark.slow
def test_two_hundred_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of processes that are forked from one that has all imported: so they begin at once."""
    monkeypatch.setattr(loop, "BLOCK", 10)
    monkeypatch.setattr(loop, "VALIDATED", range(5, 9))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    chance = random.Random(0)
    straight = context.Process(target=at_work, args=(tmp_path / "straight", 0.0))
    straight.start()
    straight.join()
    # the first one waits for the imports
    start = time.monotonic()
    straight = context.Process(target=at_work, args=(tmp_path / "again", 0.0))
    straight.start()
    straight.join()
    whole = time.monotonic() - start
    want = kept(tmp_path / "straight")
    assert kept(tmp_path / "again") == want
    killed = rounds = 0
    while killed < KILLS:
        root = tmp_path / str(rounds)
        rounds += 1
        for _ in range(KILLS_PER_RUN):
            process = context.Process(target=at_work, args=(root, chance.choice([0.0, 0.05, 60.0])))
            process.start()
            time.sleep(chance.random() * whole)
            process.kill()
            process.join()
            killed += process.exitcode == -9
        loop.train(RUNS, asked(), root)
        assert kept(root) == want, f"run {rounds}, after {killed} kills"
        for one in RUNS:
            rows = RunFolder.open(root / one.name).rows(METRICS)
            steps = [row["step"] for row in rows]
            assert steps == sorted(set(steps))
            assert steps[-1] == 60
