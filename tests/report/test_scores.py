"""Which rows make a cell."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prlstm import tasks
from prlstm.report.columns import TABLE2, TABLE3, Column
from prlstm.report.paper import tables
from prlstm.report.scores import Cell, as_ranges, counts, packed_totals, score_cells
from prlstm.training import RunConfig
from tests.report.made import failed_row, score_row

PARITY = ["parity_check"]


def cell(rows: list[dict[str, object]], column: str = "pr_lstm", table: str = "table2") -> Cell:
    columns = TABLE2 if table == "table2" else TABLE3
    return score_cells(rows, columns, PARITY, table)["parity_check", column]


def test_a_cell_over_seeds() -> None:
    scores = {0: 1.0, 1: 0.5, 2: 0.90625, 3: 0.75}
    found = cell([score_row(seed=seed, score=score) for seed, score in scores.items()])
    assert {one.seed: one.score for one in found.seeds} == scores
    assert found.most == 1
    assert found.best_seed.seed == 0
    assert found.median == pytest.approx((0.90625 + 0.75) / 2)
    assert found.succeeded == 2
    assert found.is_solved
    assert (found.paper, found.floor, found.steps) == (1.0, 0.5, (1000, 1000))
    assert not found.is_floor_enough
    for one in found.seeds:
        assert one.low <= one.score <= one.high
        assert one.high - one.low < 0.01


def test_of_a_run_the_furthest_row_counts_not_the_best() -> None:
    rows = [
        score_row(step=3000, score=0.5),
        score_row(step=1000, score=1.0),
        score_row(step=3000, score=0.75, samples=64),
        score_row(step=2000, score=0.875, weights="best"),
    ]
    (seed,) = cell(rows).seeds
    assert (seed.step, seed.score, seed.best) == (3000, 0.5, 0.875)


def test_precisions_do_not_mix_the_furthest_one_counts() -> None:
    rows = [score_row(seed=seed, step=1000) for seed in range(3)]
    rows += [score_row(seed=0, step=2000, score=1.0, precision="bfloat16")]
    found = cell(rows)
    assert (found.precision, len(found.seeds), found.most) == ("bfloat16", 1, 1.0)
    rows += [score_row(seed=1, step=2000)]
    assert (cell(rows).precision, len(cell(rows).seeds)) == ("float32", 3)


def test_other_settings_and_lengths_are_other_cells() -> None:
    rows = [score_row(hidden_size=137), score_row(refine=0), score_row(batch_size=8)]
    rows += [score_row() | {"lengths": [[41, 100]]}]
    assert not cell(rows).seeds
    assert len(cell(rows, "pr_lstm_137", "table3").seeds) == 1
    assert len(cell(rows, "pr_lstm_0R", "table3").seeds) == 1
    assert not cell(rows, "pr_lstm_1R", "table3").seeds


def test_a_run_that_failed_is_told() -> None:
    found = cell([score_row(seed=0), failed_row(seed=1)])
    assert [one.seed for one in found.seeds] == [0]
    assert found.failed == ("the loss is nan",)


@pytest.mark.parametrize(("table", "columns"), [("table2", TABLE2), ("table3", TABLE3)])
def test_the_columns_are_those_of_the_paper(table: str, columns: tuple[Column, ...]) -> None:
    assert [one.name for one in columns] == list(tables()[table])
    for column in columns:
        config = RunConfig.from_own("parity_check", column.model, column.setting)
        # what is written is what tells the run from a usual one
        assert config.own() == dict(column.setting)
        assert set(tables()[table][column.name]) == set(tasks.names())


@given(st.lists(st.lists(st.integers(1, 99), min_size=2, max_size=2), max_size=5))
def test_packed_totals_are_unpacked(total: list[list[int]]) -> None:
    correct = [[0] * len(of) for of in total]
    assert counts({"correct": correct, "total": packed_totals(total)}) == (correct, total)


@given(st.sets(st.integers(1, 60)))
def test_ranges_hold_all_lengths(lengths: set[int]) -> None:
    ranges = as_ranges(sorted(lengths))
    assert [n for first, last in ranges for n in range(first, last + 1)] == sorted(lengths)
    assert all(first[1] + 1 < second[0] for first, second in pairwise(ranges))


def test_success_begins_at_90_percent() -> None:
    exact, below = (score_row(seed=n) | {"score": s} for n, s in enumerate((0.9, 0.8999999)))
    assert (cell([exact]).succeeded, cell([exact]).is_solved) == (1, True)
    assert (cell([below]).succeeded, cell([below]).is_solved) == (0, False)


def test_a_run_with_a_score_has_not_failed() -> None:
    found = cell([failed_row(seed=0), score_row(seed=0), failed_row(seed=1)])
    assert (found.tried, len(found.seeds), len(found.failed)) == (2, 1, 1)


def test_scores_are_told_before_failures_of_another_precision() -> None:
    failed = failed_row(seed=0, precision="bfloat16") | {"step": 9000}
    found = cell([score_row(), failed])
    assert (found.precision, found.failed) == ("float32", ())
    assert cell([failed]).precision == "bfloat16"


def test_best_weights_of_before_say_nothing_of_a_later_score() -> None:
    rows = [score_row(step=1000), score_row(step=500, score=0.875, weights="best")]
    assert cell(rows).seeds[0].best == 0.875
    assert cell([*rows, score_row(step=3000)]).seeds[0].best is None
    later = score_row(step=2000, score=1.0, weights="best")
    assert cell([*rows, later, score_row(step=3000)]).seeds[0].best == 1.0
