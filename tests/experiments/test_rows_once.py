"""Rows of a cell stand once, whoever makes it how often, and whenever somebody is killed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from prlstm.experiments import runs
from prlstm.experiments.runs import Store, Wanted, make
from prlstm.files import Row, append_rows, read_rows
from prlstm.report.columns import Column
from prlstm.report.rows import CURVES, SCORES, append_results, read_results
from prlstm.training import Event, Request, RunFolder, loop
from prlstm.training.events import Scoring
from prlstm.training.runs import METRICS

CPU = torch.device("cpu")
COLUMN = Column("rnn", "RNN", "rnn", {"hidden_size": 4, "batch_size": 8})
CELL = Wanted("parity_check", COLUMN, (0, 1), "float32")
# the best weights are those of step 20, or of step 30: there are rows of two kinds, or of one
REQUEST = Request(steps=30, validate_every=20, samples=64)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(loop, "BLOCK", 10)
    monkeypatch.setattr(loop, "VALIDATED", range(5, 9))
    return Store(tmp_path / "results", tmp_path / "runs", CURVES, lengths=(5, 9))


def quiet(event: Event) -> None:
    pass


def scores(store: Store) -> list[Row]:
    """Rows of scores in any order, without how long they took."""
    rows = [row | {"score_seconds": 0} for row in read_results(store.results / SCORES)]
    return sorted(rows, key=lambda row: (row["run"], row["weights"]))


def test_rows_of_one_identity_are_added_once(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    append_rows(path, [{"a": 1, "b": 1}])
    append_rows(path, [{"a": 1, "b": 2}, {"a": 2, "b": 2}], lambda row: row["a"])
    append_rows(path, [{"a": 2, "b": 3}])
    assert read_rows(path) == [{"a": 1, "b": 1}, {"a": 2, "b": 2}, {"a": 2, "b": 3}]
    # one that was cut off is none
    path.write_text('{"a": 1}\n{"a": 2')
    append_rows(path, [{"a": 1}, {"a": 2}], lambda row: row["a"])
    assert read_rows(path) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("when", ["before its curve", "while it scores"])
def test_two_that_make_a_cell_at_a_time(
    store: Store, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One has trained, and has not written all of its rows when another begins and ends."""
    began: list[str] = []

    def begin(now: str) -> None:
        if now == when and not began:
            began.append(now)
            make(CELL, REQUEST, store, CPU, quiet)

    def append(*given: Any) -> None:
        begin("before its curve")
        append_results(*given)

    def report(event: Event) -> None:
        if isinstance(event, Scoring):
            begin("while it scores")

    monkeypatch.setattr(runs, "append_results", append)
    make(CELL, REQUEST, store, CPU, report)
    assert began == [when]
    rows = read_results(store.results / SCORES)
    assert len({(row["run"], row["weights"]) for row in rows}) == len(rows)
    assert {row["seed"] for row in rows if row["weights"] == "last"} == {0, 1}
    assert len(read_results(store.results / CURVES)) == 2


@pytest.mark.parametrize("kept", range(5))
def test_a_kill_between_two_rows(store: Store, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "kinds_of_weights", lambda folder: ["last", "best"])
    make(CELL, REQUEST, store, CPU, quiet)
    path = store.results / SCORES
    whole = scores(store)
    lines = path.read_text().splitlines(keepends=True)
    assert len(lines) == 4
    path.write_text("".join(lines[:kept]) + "".join(lines[kept:])[:100])
    make(CELL, REQUEST, store, CPU, quiet)
    assert scores(store) == whole
    assert len(read_results(store.results / CURVES)) == 2


def test_curves_have_the_same_points_however_often_a_run_is_saved(store: Store) -> None:
    make(CELL, REQUEST, store, CPU, quiet)
    often = replace(store, results=store.results / "often", runs=store.runs / "often")
    make(CELL, replace(REQUEST, checkpoint_seconds=0.0), often, CPU, quiet)
    config = CELL.configs[0]
    assert len(RunFolder(often.runs / config.name, config).rows(METRICS)) == 30
    straight, saved = (
        [row | {"seconds": 0, "made_with": 0} for row in read_results(one.results / CURVES)]
        for one in (store, often)
    )
    assert straight == saved
    assert straight[0]["step"] == [10, 20, 30]


def test_a_part_of_a_block_weighs_what_it_is() -> None:
    rows = [
        {"step": 30, "loss": 1.0, "accuracy": 0.5, "answers": 10, "seconds": 1},
        {"step": 100, "loss": 2.0, "accuracy": 1.0, "answers": 30, "seconds": 2},
        # as it was written before answers were counted
        {"step": 110, "loss": 3.0, "accuracy": 0.25, "seconds": 3},
    ]
    first, second = runs._blocks(json.loads(json.dumps(rows)), 10)
    assert (first["step"], first["seconds"]) == (100, 2)
    assert first["loss"] == pytest.approx((20 * 1 + 70 * 2) / 90)
    assert first["accuracy"] == pytest.approx((5 + 30) / 40)
    assert (second["step"], second["loss"], second["accuracy"]) == (110, 3.0, 0.25)
