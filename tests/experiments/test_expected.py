"""How long cells will take, from rows of cells like them."""

import re
from pathlib import Path
from typing import Any

import pytest

from prlstm.experiments.expected import Left, left
from prlstm.experiments.runs import Store, Wanted
from prlstm.files import Row
from prlstm.report.columns import Column
from prlstm.report.rows import CURVES
from prlstm.training import Request
from tests.cli.command import TINY, in_a_line, prlstm

REQUEST = Request(steps=1000)


def cell(seeds: int = 2, **setting: Any) -> Wanted:
    column = Column("lstm", "LSTM", "lstm", {"hidden_size": 8, **setting})
    return Wanted("parity_check", column, tuple(range(seeds)), "float32")


def rows(seeds: int, step: int, seconds: float, cuda: str | None = None, **more: Any) -> list[Row]:
    known = {"task": "parity_check", "model": "lstm", "setting": {"hidden_size": 8}}
    known |= {"weights": "last", "step": step, "seconds": seconds, "made_with": {"cuda": cuda}}
    return [known | {"seed": seed} | more for seed in range(seeds)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results", tmp_path / "runs", CURVES)


@pytest.mark.parametrize(
    ("known", "seconds"),
    [
        ([], None),
        (rows(2, 500, 10.0), 20.0),
        # of more seeds at once, as much for each
        (rows(4, 500, 10.0), 10.0),
        # the stack that is most alike, and of it the longest run
        (rows(4, 500, 10.0) + rows(2, 100, 9.0) + rows(2, 500, 5.0), 10.0),
        (rows(2, 500, 10.0, score_seconds=3.0), 23.0),
        (rows(2, 500, 10.0, cuda="12.8"), None),
        (rows(2, 500, 10.0, task="even_pairs"), None),
        (rows(2, 500, 10.0, setting={"hidden_size": 9}), None),
        (rows(2, 500, 10.0, setting={"hidden_size": 8, "schedule.rate": 0.1}), 20.0),
        (rows(2, 500, 10.0, weights="best"), None),
    ],
)
def test_what_is_expected(store: Store, known: list[Row], seconds: float | None) -> None:
    (one,) = left([cell()], REQUEST, store, known, is_cuda=False)
    assert one == Left(0, 2, 0, seconds)
    (other,) = left([cell(**{"schedule.rate": 0.3})], REQUEST, store, known, is_cuda=False)
    assert other.seconds == seconds


def test_a_dry_run_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small = [*TINY, "--tasks", "parity_check", "--models", "pr_lstm,rnn", "--seeds", "2"]
    dry = ["reproduce", "table2", *small, "--steps", "30", "--dry-run"]
    text = in_a_line(prlstm(*dry))
    assert "PR-LSTM on parity_check 2 0 30 unknown" in text
    assert "2 units to make, 0 answered by rows in results" in text
    assert "0:00, and 2 of unknown time" in text
    assert not list(tmp_path.iterdir())
    prlstm(
        "reproduce", "table2", *small[:-4], "--models", "pr_lstm", "--seeds", "2", "--steps", "20"
    )
    text = in_a_line(prlstm(*dry, "--engine", "ray"))
    assert re.search(r"PR-LSTM on parity_check 2 20 30 \d+:\d\d ", text)
    assert re.search(r"one after the other: \d+:\d\d, and 1 of unknown time", text)
    assert not (tmp_path / "runs" / "logs").exists()
    grid = tmp_path / "grid.toml"
    grid.write_text('task = "parity_check"\nmodel = "rnn"\nhidden_size = [4, 8]\nsteps = 20\n')
    text = in_a_line(prlstm("sweep", grid, "--device", "cpu", "--dry-run"))
    assert "rnn, hidden_size 4 on parity_check 1 0 20 unknown" in text
    assert "2 units to make" in text
