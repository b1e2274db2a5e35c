"""The sentences of the headline, and curves of training: they say what rows say."""

import pytest

from prlstm.files import Row
from prlstm.report.columns import TABLE2
from prlstm.report.page.headline import sentences, tallies
from prlstm.report.page.origins import Origins
from prlstm.report.page.scores import others, table2
from prlstm.report.page.training import over_steps, training_charts
from prlstm.report.rows import CURVES, SCORES
from tests.report.made import MADE_WITH, curve_row, failed_row, score_row

SOLVED = ("even_pairs", "modular_arithmetic", "parity_check", "cycle_navigation",
          "missing_duplicate_string", "bucket_sort")  # fmt: skip


def said(rows: list[Row]) -> str:
    return " ".join(sentences(table2(rows), others(rows)))


def test_all_is_solved() -> None:
    rows = [score_row(task, seed=seed, score=1 - 0.5 * seed) for task in SOLVED for seed in (0, 1)]
    assert said(rows) == (
        "PR-LSTM solves 6 of the 6 tasks that it solves in the paper: at least one seed, trained "
        "on words of 1 to 40 tokens, answers 90 % or more at lengths 41 to 500. Bucket Sort † is "
        "passed by guessing alone. Behind this stand 12 runs of 1k steps (the paper: 1M) on "
        "a device."
    )


def test_what_is_missed_absent_and_more() -> None:
    rows = [score_row("parity_check", score=1.0, step=2000), score_row("even_pairs", score=0.75)]
    rows.append(score_row("odds_first", score=1.0, step=5000))
    rows += [failed_row(0, task="cycle_navigation"), score_row("bucket_sort", "lstm", score=1.0)]
    text = said(rows)
    assert text.startswith("PR-LSTM solves 1 of the 6 tasks")
    assert "Not solved: Even Pairs (75.0 %)." in text
    assert "Without a score, as every seed failed: Cycle Navigation." in text
    assert "Not scored yet: Modular Arithmetic (Simple), Missing Duplicate, Bucket Sort." in text
    assert "Solved here but not in the paper: Odds First." in text
    assert "guessing" not in text
    assert "3 runs of 1k-5k steps" in text
    by_title = {one.title: one for one in tallies(table2(rows))}
    ours, lstm = by_title["PR-LSTM"], by_title["LSTM"]
    assert (ours.paper, ours.solved, ours.scored, ours.of) == (6, 2, 3, 15)
    assert (lstm.paper, lstm.solved, lstm.scored) == (5, 1, 1)


def test_other_settings_are_not_the_papers() -> None:
    rows = [score_row("parity_check", score=1.0, hidden_size=16),
            score_row("even_pairs", score=0.5, hidden_size=16),
            score_row("even_pairs", "lstm", score=1.0, hidden_size=16)]  # fmt: skip
    text = said(rows)
    assert text.startswith("No PR-LSTM of the paper's settings has been scored yet.")
    assert "1 of 2 tasks tried is solved (Parity Check)" in text
    assert "stand 2 runs of 1k steps" in text
    assert [(cell.task, cell.column.model) for cell in others(rows)] == [
        ("even_pairs", "pr_lstm"), ("even_pairs", "lstm"), ("parity_check", "pr_lstm"),
    ]  # fmt: skip


def test_precision_alone_is_no_other_setting() -> None:
    assert others([score_row(precision="bfloat16"), score_row(hidden_size=137)]) == []


def test_the_median_of_the_seeds_over_steps() -> None:
    rows = [curve_row("parity_check", "lstm", seed=seed) for seed in range(3)]
    for factor, row in zip((1, 10, 3), rows, strict=True):
        row["loss"] = [factor * value for value in row["loss"]]
    # one seed went further, by rows of its own
    rows.append(rows[0] | {"step": [600], "seconds": [9], "loss": [7.0], "accuracy": [1.0]})
    rows.append(failed_row(3, task="parity_check", model="lstm"))
    chart = over_steps(rows, TABLE2, ["even_pairs", "parity_check"], "loss", "title")
    (panel,) = chart.panels
    (curve,) = panel.curves
    assert (panel.title, panel.x, panel.y, curve.label) == (
        "Parity Check", "steps", "training loss", "LSTM",
    )  # fmt: skip
    assert curve.x == [100, 200, 300, 400, 500]
    assert curve.y == pytest.approx([3 / step for step in curve.x])


def test_charts_of_training_are_those_with_rows() -> None:
    small = curve_row("parity_check", "pr_lstm", hidden_size=8)
    scored = [score_row("parity_check", hidden_size=8)]
    made = training_charts([small, curve_row("even_pairs", "rnn")], others(scored))
    assert [name for name, _, _ in made] == [
        "training-2-loss", "training-2-accuracy", "training-others-loss",
        "training-others-accuracy",
    ]  # fmt: skip
    (panel,) = made[2][1].panels
    assert panel.curves[0].label == "PR-LSTM"
    assert made[3][1].panels[0].shares


def test_origins_are_told_apart_and_counted() -> None:
    other = score_row() | {"made_with": MADE_WITH | {"commit": None, "cuda": None, "date": "b"}}
    later = score_row() | {"made_with": other["made_with"] | {"date": "a"}}
    origins = Origins({SCORES: [score_row(), other], CURVES: [later, score_row()]})
    first, second = origins.all
    assert (first.number, first.rows) == (1, {SCORES: 1, CURVES: 1})
    assert (second.number, second.rows, second.days) == (2, {SCORES: 1, CURVES: 1}, "a to b")
    assert (second.said("commit"), second.said("cuda"), first.days) == (
        "not known", "none", "not known",
    )  # fmt: skip
    assert origins.numbers([later, score_row()]) == [1, 2]
    assert origins.of_cells(table2([score_row()]).cells.values()) == [1]


def test_without_rows() -> None:
    assert said([]) == "No PR-LSTM of the paper's settings has been scored yet."
