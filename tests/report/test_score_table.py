"""Tables of scores in all their forms say the same."""

import csv
import io
from pathlib import Path

import pytest

from prlstm import tasks
from prlstm.report.columns import TABLE2
from prlstm.report.score_table import (
    ScoreTable,
    as_csv,
    as_latex,
    as_markdown,
    explanation,
    write_table,
)
from prlstm.report.scores import score_cells
from tests.report.latex import ENGINE, assert_compiles
from tests.report.made import failed_row, score_row


@pytest.fixture(scope="module")
def table() -> ScoreTable:
    rows = [score_row(seed=seed, step=1000 * (seed + 1), score=s) for seed, s in ((0, 1), (1, 0.5))]
    rows += [score_row("bucket_sort", "lstm", score=0.921875), failed_row(seed=2)]
    rows += [score_row("even_pairs", "rnn", score=0.5)]
    return ScoreTable(
        "A title", tasks.names(), TABLE2, score_cells(rows, TABLE2, tasks.names(), "table2")
    )


def test_csv(table: ScoreTable) -> None:
    lines = list(csv.DictReader(io.StringIO(as_csv(table))))
    assert [(line["task"], line["model"]) for line in lines] == [
        ("even_pairs", "rnn"), ("parity_check", "pr_lstm"), ("bucket_sort", "lstm"),
    ]  # fmt: skip
    parity, bucket = lines[1:]
    assert (float(parity["max"]), float(parity["median"]), float(parity["paper"])) == (1, 0.75, 1)
    assert (parity["solved"], parity["seeds"], parity["failed"]) == ("1", "2", "1")
    assert (parity["steps_min"], parity["steps_max"]) == ("1000", "2000")
    assert float(parity["ci_low"]) < 1 == float(parity["ci_high"])
    # one of three: Wilson's interval
    assert (parity["chance_low"], parity["chance_high"]) == ("0.0615", "0.7923")
    assert (parity["is_solved"], parity["floor_is_enough"]) == ("1", "0")
    assert (bucket["is_solved"], bucket["floor_is_enough"]) == ("1", "1")
    assert (parity["device"], parity["commit"]) == ("a device", "abc")


def test_markdown(table: ScoreTable) -> None:
    lines = as_markdown(table, lambda cell: f"of {cell.tried}").splitlines()
    assert lines[2:] == [
        "| Even Pairs | RNN | 100.0 | 50.0 | -50.0 | 50.0 | 0/1 | 1k | 50.0 | of 1 |",
        "| Parity Check | PR-LSTM | 100.0 | **100.0** | +0.0 | 75.0 | 1/3, 1 failed | 1k-2k | "
        "50.0 | of 3 |",
        "| Bucket Sort † | LSTM | 99.3 | **92.1** | -7.1 | 92.1 | 1/1 | 1k | 90.1 | of 1 |",
    ]
    assert len({line.count("|") for line in lines}) == 1


def test_latex(table: ScoreTable) -> None:
    text = as_latex(table)
    assert r"\textbf{100.0} \textcolor{gray}{(100.0)}" in text
    assert r"Bucket Sort$^\dagger$" in text
    rows = [line for line in text.splitlines() if line.endswith((r"\\", r"\\[2pt]"))]
    assert {line.count("&") for line in rows} == {8}
    assert text.isascii()


def test_files(table: ScoreTable, tmp_path: Path) -> None:
    paths = write_table(table, tmp_path / "new" / "table")
    assert [path.suffix for path in paths] == [".csv", ".tex", ".svg", ".png"]
    svg = paths[2].read_bytes()
    write_table(table, tmp_path / "new" / "table")
    assert paths[2].read_bytes() == svg
    assert "rounded down" in explanation(table)


@pytest.mark.slow
@pytest.mark.skipif(ENGINE is None, reason="no pdflatex here")
def test_latex_compiles(table: ScoreTable, tmp_path: Path) -> None:
    assert_compiles(write_table(table, tmp_path / "table")[1])
