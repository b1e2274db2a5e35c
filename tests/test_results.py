"""Tables and the picture of the documents: those of the rows, whatever rows there are."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from prlstm.experiments.shipping import RECIPES, wanted
from prlstm.files import Row
from tests.report.made import failed_row, score_row

ROOT = Path(__file__).parent.parent


@pytest.fixture
def summary(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return runpy.run_path(str(ROOT / "benchmarks" / "summary.py"))


@pytest.mark.parametrize(
    "name",
    [
        "README.md", "docs/models.md", "docs/reproduction.md", "docs/tasks.md",
        "docs/training.md", "docs/scale.md", "docs/performance.md",
    ],
)  # fmt: skip
def test_tables_are_those_of_the_rows(name: str, summary: dict[str, Any]) -> None:
    path = ROOT / name
    assert path in {document for document, *_ in summary["MADE"]}
    assert summary["updated"](path) == path.read_text(), "run `make results`"


def test_every_document_with_tables_is_looked_at(summary: dict[str, Any]) -> None:
    (names,) = (
        mark.args[1]
        for mark in test_tables_are_those_of_the_rows.pytestmark  # type: ignore[attr-defined]
    )
    assert {ROOT / name for name in names} == {document for document, *_ in summary["MADE"]}


def test_the_picture_is_that_of_the_rows(tmp_path: Path, summary: dict[str, Any]) -> None:
    """Its numbers and its TeX; what is drawn of them depends on the version of matplotlib too."""
    there = summary["PICTURE"]
    made = summary["picture"](summary["read"](summary["SCORES"]), tmp_path / there.name)
    shown = {path.name for path in there.parent.glob(f"{there.name}.*")}
    assert shown == {path.name for path in made}, "run `make results`"
    for path in made:
        if path.suffix in (".csv", ".tex"):
            shown_text = there.with_name(path.name).read_text()
            assert shown_text == path.read_text(), "run `make results`"


def shipped_rows() -> list[Row]:
    cells = [wanted(recipe) for recipe in RECIPES]
    return [score_row(one.task, score=0.75, **one.column.setting) for one in cells]


def test_without_rows_the_documents_say_so(tmp_path: Path, summary: dict[str, Any]) -> None:
    assert summary["read"](tmp_path / "scores.jsonl") == []
    assert "Table 2 has not been run yet" in summary["headline"]([])
    assert "No rows yet: `prlstm reproduce shipped`" in summary["headline"]([])
    assert summary["picture"]([], tmp_path / "none") == []
    assert not list(tmp_path.iterdir())


def test_small_models_stand_in_until_the_table_has_rows(
    tmp_path: Path, summary: dict[str, Any]
) -> None:
    rows = shipped_rows()
    text = summary["headline"](rows)
    assert "Table 2 has not been run yet" in text
    assert all(f"| `{recipe.task}` | {recipe.hidden_size} |" in text for recipe in RECIPES)
    csv = summary["picture"](rows, tmp_path / "small")[0].read_text()
    # a panel of 46 points for each
    assert len(csv.splitlines()) == 1 + 46 * len(RECIPES)
    more = [*rows, score_row("parity_check", "lstm", score=0.5)]
    assert "| Parity Check | 100.0 | 50.0 | 0/1 | 50.0 |" in summary["headline"](more)
    csv = summary["picture"](more, tmp_path / "whole")[0].read_text()
    assert {line.split(",")[1] for line in csv.splitlines()[1:]} == {"LSTM"}


def test_the_headline_has_models_side_by_side(summary: dict[str, Any]) -> None:
    rows = [score_row(seed=seed, score=share) for seed, share in enumerate((1, 0.5))]
    rows += [score_row("bucket_sort", "lstm", score=0.921875), failed_row(seed=2)]
    lines = summary["headline"](rows).splitlines()
    assert lines[2].count("paper") == 2
    assert lines[4:6] == [
        "| Parity Check | 100.0 | **100.0** | 1/3, 1 failed | 100.0 | - | - | 50.0 |",
        "| Bucket Sort † | 99.4 | - | - | 99.3 | **92.1** | 1/1 | 90.1 |",
    ]
    assert "PR-LSTM: 2 seeds of 1k steps; LSTM: 1 seed of 1k steps" in lines[-1]


def test_a_cell_far_from_the_paper_has_a_remark(summary: dict[str, Any]) -> None:
    rows = [score_row("cycle_navigation", score=1), score_row("even_pairs", score=0.96875)]
    rows += [score_row("even_pairs", "rnn", score=0.984375)]
    second, third = summary["reproduction"](rows).split("### Table 3")
    remarks = {tuple(line.split(" | ")[:2]): line.split(" | ")[-1] for line in second.splitlines()}
    assert remarks["| Even Pairs", "PR-LSTM"] == "1k of 1M steps, 1 of 10 seeds |"
    # close enough: 1.6 points
    assert remarks["| Even Pairs", "RNN"] == " |"
    assert "1k of 1M steps, 1 of 10 seeds; the paper's Table 2 has 100.0" in third


def test_what_is_known_is_known_of_cells_that_are_far(summary: dict[str, Any]) -> None:
    """A remark that no cell needs any more is taken away."""
    text = summary["updated"](ROOT / "docs" / "reproduction.md")
    known = runpy.run_path(str(ROOT / "benchmarks" / "result_tables.py"))["KNOWN"]
    assert all(why in text for why in known.values())


def test_another_row_is_another_headline_and_another_picture(
    tmp_path: Path, summary: dict[str, Any]
) -> None:
    one, other = ([score_row(score=share)] for share in (0.5, 0.515625))
    assert summary["headline"](one) != summary["headline"](other)
    first, second = (
        [path.read_bytes() for path in summary["picture"](rows, tmp_path / f"{n}")]
        for n, rows in enumerate((one, other))
    )
    assert all(before != after for before, after in zip(first, second, strict=True))
