"""Cells of a table: made, skipped, stopped and continued."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from prlstm.experiments.budget import Standing, best_next, by_gain, in_order
from prlstm.experiments.crew import Heard, work
from prlstm.experiments.runs import MOST_POINTS, Store, Wanted, make
from prlstm.files import Row
from prlstm.report.columns import TABLE2, Column
from prlstm.report.rows import CURVES, FIGURE3, SCORES, append_results, read_results
from prlstm.report.scores import score_cells
from prlstm.training import Event, Request, loop
from prlstm.training.events import Scoring
from prlstm.training.runs import METRICS, RunFolder
from tests.report.made import MADE_WITH

CPU = torch.device("cpu")
SMALL = {"hidden_size": 4, "batch_size": 8}
LSTM, PR_LSTM = (
    next(one for one in TABLE2 if one.name == name).with_settings(SMALL)
    for name in ("lstm", "pr_lstm")
)
OF_A_CLOCK = ("seconds", "score_seconds")
REQUEST = Request(steps=30, validate_every=20, samples=64)


def wanted(task: str = "parity_check", column: Column = PR_LSTM, seeds: int = 2) -> Wanted:
    return Wanted(task, column, tuple(range(seeds)), "float32")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(loop, "BLOCK", 10)
    monkeypatch.setattr(loop, "VALIDATED", range(5, 9))
    return Store(tmp_path / "results", tmp_path / "runs", CURVES, lengths=(5, 6, 9))


def quiet(event: Event | Heard) -> None:
    pass


def timeless(rows: list[Row]) -> list[Row]:
    """Rows without what a clock says."""
    return [
        {name: row[name] for name in row if name not in (*OF_A_CLOCK, "made_with")} for row in rows
    ]


def everything(store: Store) -> tuple[list[Row], list[Row]]:
    """Scores and curves, in any order of cells."""
    rows = [timeless(read_results(store.results / name)) for name in (SCORES, CURVES)]
    scores, curves = (sorted(some, key=lambda r: (r["run"], r.get("weights", ""))) for some in rows)
    return scores, curves


def test_a_checkpoint_without_its_times_is_refused_before_it_is_scored(store: Store) -> None:
    one = wanted(seeds=1)
    make(one, REQUEST, store, CPU, quiet)
    (folder,) = (RunFolder(store.runs / config.name, config) for config in one.configs)
    for path in (folder.path / METRICS, store.results / SCORES):
        path.unlink()
    told: list[Event] = []
    with pytest.raises(FileNotFoundError, match=r"expected metrics\.jsonl beside the checkpoint"):
        make(one, REQUEST, store, CPU, told.append)
    assert not any(isinstance(event, Scoring) for event in told)


def test_rows_of_a_cell(store: Store) -> None:
    make(wanted(), REQUEST, store, CPU, quiet)
    scores = read_results(store.results / SCORES)
    last = [row for row in scores if row["weights"] == "last"]
    assert [(row["seed"], row["step"], row["samples"]) for row in last] == [
        (0, 30, 64),
        (1, 30, 64),
    ]
    for row in scores:
        assert row["lengths"] == [[5, 6], [9, 9]]
        shares = [sum(c) / 64 for c in row["correct"]]
        assert row["score"] == pytest.approx(sum(shares) / 3)
        assert row["total"] == [64] * 3
        assert row["setting"] == SMALL
        assert row["seconds"] > 0
        assert {"device", "torch", "commit"} <= set(row["made_with"])
    for row in read_results(store.results / CURVES):
        assert row["step"] == [10, 20, 30]
        assert len(row["loss"]) == len(row["accuracy"]) == len(row["seconds"]) == 3


def test_what_rows_answer_is_skipped(store: Store) -> None:
    make(wanted(), REQUEST, store, CPU, quiet)
    before = (store.results / SCORES).read_bytes()

    def never(event: Event) -> None:
        raise AssertionError(event)

    make(wanted(), REQUEST, store, CPU, never)
    make(wanted(seeds=1), replace(REQUEST, steps=20), store, CPU, never)
    # nor does it need the runs
    elsewhere = replace(store, runs=store.runs / "none")
    make(wanted(), REQUEST, elsewhere, CPU, never)
    assert (store.results / SCORES).read_bytes() == before


def test_more_seeds_steps_and_words_are_added(store: Store) -> None:
    make(wanted(seeds=1), REQUEST, store, CPU, quiet)
    make(wanted(seeds=2), REQUEST, store, CPU, quiet)
    make(wanted(seeds=2), replace(REQUEST, steps=50), store, CPU, quiet)
    make(wanted(seeds=2), replace(REQUEST, steps=50, samples=128), store, CPU, quiet)
    last = [row for row in read_results(store.results / SCORES) if row["weights"] == "last"]
    assert [(r["seed"], r["step"], r["samples"]) for r in last] == [
        (0, 30, 64), (1, 30, 64), (0, 50, 64), (1, 50, 64), (0, 50, 128), (1, 50, 128),
    ]  # fmt: skip
    curves = read_results(store.results / CURVES)
    assert [row["step"] for row in curves if row["seed"] == 0] == [[10, 20, 30], [40, 50]]


def test_long_curves_are_thinned(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prlstm.experiments.runs.MOST_POINTS", 2)
    make(wanted(seeds=1), REQUEST, store, CPU, quiet)
    (row,) = read_results(store.results / CURVES)
    assert row["step"] == [20, 30]
    metrics = RunFolder(store.runs / row["run"], wanted().configs[0]).rows("metrics.jsonl")
    assert row["loss"][0] == pytest.approx((metrics[0]["loss"] + metrics[1]["loss"]) / 2, abs=1e-6)
    assert MOST_POINTS == 200


def test_stopped_in_the_middle_and_continued_the_rows_are_equal(
    store: Store, tmp_path: Path
) -> None:
    cells = [wanted(column=column) for column in (LSTM, PR_LSTM)]
    straight = replace(store, results=tmp_path / "straight", runs=tmp_path / "straight_runs")
    assert work(cells, in_order(cells, REQUEST, straight), straight, CPU, lambda heard: None) == []
    for stop in (25, 13):

        def interrupt(heard: Heard, stop: int = stop) -> None:
            if heard.what == "training" and heard.step == stop:
                os.kill(os.getpid(), signal.SIGINT)

        choose = in_order(cells, REQUEST, store)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("prlstm.experiments.crew.EVERY", -1.0)
            with pytest.raises(KeyboardInterrupt):
                work(cells, choose, store, CPU, interrupt)
    assert work(cells, in_order(cells, REQUEST, store), store, CPU, lambda heard: None) == []
    assert everything(store) == everything(straight)


def test_a_run_that_fails_leaves_a_row_and_is_not_tried_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = loop.Trainer.update

    def poisoned(self: loop.Trainer) -> None:
        if self.step == 14 and len(self.runs) == 2:
            with torch.no_grad():
                next(self.model.parameters())[1].fill_(float("nan"))
        update(self)

    monkeypatch.setattr(loop.Trainer, "update", poisoned)
    make(wanted(), REQUEST, store, CPU, quiet)
    rows = read_results(store.results / SCORES)
    (failed,) = [row for row in rows if row.get("failed")]
    assert (failed["seed"], failed["weights"]) == (1, "none")
    assert "the loss is nan at step 14" in failed["failed"]
    assert {row["seed"] for row in rows if row["weights"] == "last"} == {0}
    assert not store.missing(wanted(), REQUEST)
    lengths = [[5, 6], [9, 9]]
    cells = score_cells(rows, [PR_LSTM], ["parity_check"], "table2", lengths)
    cell = cells["parity_check", "pr_lstm"]
    assert [one.seed for one in cell.seeds] == [0]
    assert cell.failed == (failed["failed"],)
    # a budget does not wait for it either
    assert by_gain([wanted()], REQUEST, store, "table2", deadline=1e9)(()) is None


def test_a_budget_sees_what_rows_say(store: Store) -> None:
    """Which is next, by rows that are written by hand."""

    def put(cell: Wanted, seed: int, step: int, score: float, seconds: float) -> None:
        name = cell.configs[seed].name
        row = {
            "run": name, "task": cell.task, "model": "lstm", "setting": {}, "seed": seed,
            "weights": "last", "step": step, "score": score, "seconds": seconds,
            "score_seconds": 0.0, "samples": 64, "lengths": [[5, 6], [9, 9]],
            "correct": [[0]] * 3, "total": [64] * 3, "made_with": MADE_WITH,
        }  # fmt: skip
        append_results(store.results / SCORES, [row])

    def chosen(cells: list[Wanted], left: float = 1e6) -> tuple[int, int] | None:
        request = replace(REQUEST, steps=100_000)
        deadline = time.monotonic() + left
        found = by_gain(cells, request, store, "table2", deadline)(())
        return None if found is None else (found[0], found[1].steps)

    # in percent the paper has 100 and 57.6 of an LSTM, 54.7 of a PR-LSTM
    parity, string = wanted("parity_check", LSTM), wanted("duplicate_string", LSTM)
    for seed in (0, 1):
        put(parity, seed, 1000, 0.5, 100.0)
        put(string, seed, 1000, 0.5, 100.0)
    assert chosen([string, parity]) == (1, 3000)
    # the best seed counts; then both are equally far away, and the first one comes first
    put(parity, 1, 1001, 0.95, 100.0)
    assert chosen([string, parity]) == (0, 3000)
    # a seed that is behind is what a cell waits for
    ahead = wanted("even_pairs", LSTM)
    put(ahead, 0, 3000, 0.2, 300.0)
    put(ahead, 1, 1000, 0.2, 100.0)
    assert chosen([ahead]) == (0, 3000)
    # 0.1 seconds a step, and nothing made on this disk
    assert chosen([ahead], left=250.0) == (0, 2000)
    assert chosen([ahead], left=150.0) is None


def test_better_than_the_paper_is_near_enough(store: Store) -> None:
    better, worse = Standing(1000, 1000, 0.9, 0.5), Standing(1000, 1000, 0.49, 0.5)
    assert best_next([better, worse], 10_000, 1e6) == (1, 3000)


def test_a_budget_goes_on_until_nothing_is_left_to_do(store: Store) -> None:
    cells = [wanted("even_pairs", LSTM, 1), wanted("parity_check", LSTM, 1)]
    choose = by_gain(cells, REQUEST, store, "table2", deadline=1e9)
    assert choose(()) == (0, REQUEST)
    assert choose((0,)) == (1, REQUEST)
    assert choose((0, 1)) is None
    assert work(cells, choose, store, CPU, lambda heard: None) == []
    assert choose(()) is None
    assert len([r for r in read_results(store.results / SCORES) if r["weights"] == "last"]) == 2


def test_a_run_that_is_taken_is_told_and_the_others_go_on(store: Store) -> None:
    cells = [wanted("parity_check", LSTM, 1), wanted("even_pairs", LSTM, 1)]
    heard: list[Heard] = []
    with loop.locked(store.runs / cells[0].configs[0].name):
        failures = work(cells, in_order(cells, REQUEST, store), store, CPU, heard.append)
    (failure,) = failures
    assert failure.startswith("LSTM on parity_check: ")
    assert failure.endswith("another process is training this run")
    assert [(one.cell, one.what) for one in heard if one.what in ("done", "failed")] == [
        (0, "failed"), (1, "done"),
    ]  # fmt: skip
    assert {row["task"] for row in read_results(store.results / SCORES)} == {"even_pairs"}


def test_a_curve_alone_that_fails_is_not_tried_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def poisoned(self: loop.Trainer) -> None:
        with torch.no_grad():
            next(self.model.parameters()).fill_(float("nan"))
        update(self)

    update = loop.Trainer.update
    monkeypatch.setattr(loop.Trainer, "update", poisoned)
    curves = replace(store, curves=FIGURE3, is_scored=False)
    cells = [wanted(seeds=1)]
    assert work(cells, in_order(cells, REQUEST, curves), curves, CPU, lambda heard: None) == []
    (row,) = read_results(store.results / FIGURE3)
    assert "the loss is nan" in row["failed"]
    # the table, whose runs have the same names, knows nothing of it
    assert store.missing(cells[0], REQUEST)


def test_rows_of_other_lengths_and_of_fewer_words_answer_nothing(store: Store) -> None:
    cell = wanted(seeds=1)
    make(cell, REQUEST, store, CPU, quiet)
    for other, request in (
        (replace(store, lengths=(5, 6)), REQUEST),
        (store, replace(REQUEST, samples=128)),
    ):
        assert other.missing(cell, request)
        # a budget sees that too
        choose = by_gain([cell], request, other, "table2", deadline=1e9)
        assert choose(()) == (0, request)


def test_rows_that_are_there_are_not_written_twice(store: Store) -> None:
    cell = wanted(seeds=1)
    make(cell, REQUEST, store, CPU, quiet)
    before = everything(store)
    with pytest.MonkeyPatch.context() as patch:
        # as if another process had written them meanwhile
        patch.setattr(Store, "missing", lambda self, wanted, request: list(wanted.configs))
        make(cell, REQUEST, store, CPU, quiet)
    assert everything(store) == before


@pytest.mark.slow
def test_several_at_a_time_give_the_same_rows(store: Store, tmp_path: Path) -> None:
    # a process of its own knows nothing of patches: blocks of 100 steps, validations as usual
    request = Request(steps=200, validate_every=0, samples=64)
    cells = [wanted(task, LSTM) for task in ("parity_check", "even_pairs", "cycle_navigation")]
    alone = replace(store, results=tmp_path / "alone", runs=tmp_path / "alone_runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "BLOCK", 100)
        work(cells, in_order(cells, request, alone), alone, CPU, lambda heard: None)
    heard: list[Heard] = []
    assert work(cells, in_order(cells, request, store), store, CPU, heard.append, jobs=2) == []
    assert {one.cell for one in heard if one.what == "done"} == {0, 1, 2}
    assert everything(store) == everything(alone)


@pytest.mark.slow
def test_a_process_that_dies_is_told_and_the_others_go_on(store: Store) -> None:
    cells: list[Any] = [wanted("parity_check", LSTM), wanted("even_pairs", LSTM)]
    # another process is training it
    with loop.locked(store.runs / cells[0].configs[0].name):
        failures = work(cells, in_order(cells, REQUEST, store), store, CPU, lambda h: None, jobs=2)
    (failure,) = failures
    assert failure.startswith("LSTM on parity_check: ")
    assert failure.endswith("another process is training this run")
    assert {row["task"] for row in read_results(store.results / SCORES)} == {"even_pairs"}


def test_a_cell_that_is_only_scored_says_how_far_it_was_made(store: Store) -> None:
    heard: list[Heard] = []
    cells = [wanted(seeds=1)]
    work(cells, in_order(cells, REQUEST, store), store, CPU, quiet)
    for path in store.results.parent.rglob(SCORES):
        path.unlink()
    work(cells, in_order(cells, REQUEST, store), store, CPU, heard.append)
    scoring = {(one.step, one.steps) for one in heard if one.what.startswith("scoring")}
    assert scoring == {(30, 30)}


def test_steps_are_told_now_and_then(store: Store) -> None:
    heard: list[Heard] = []
    cells = [wanted(seeds=1)]
    work(cells, in_order(cells, REQUEST, store), store, CPU, heard.append)
    assert heard[0] == Heard(0, "training", 0, 30, None)
    assert heard[-1] == Heard(0, "done", 30, 30)
    assert len(heard) < 12
