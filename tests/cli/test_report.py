"""`prlstm report` as a user types it."""

import re
from pathlib import Path

import pytest

from prlstm.files import append_rows
from prlstm.report.rows import SCORES
from tests.cli.command import in_a_line, prlstm
from tests.report.made import score_row


def test_a_page_is_written_and_named(tmp_path: Path) -> None:
    results, out = tmp_path / "results", tmp_path / "page.html"
    results.mkdir()
    append_rows(results / SCORES, [score_row(score=1.0)])
    text = prlstm("report", "--results", results, "--out", out)
    said = re.search(r"Written: +(\S+page\.html) \(([\d.]+) MB\)", in_a_line(text))
    assert said is not None
    assert said[1] == str(out)
    page = out.read_text()
    assert f"{len(page.encode()) / 1e6:.2f}" == said[2]
    assert "PR-LSTM solves 1 of the 6 tasks" in page
    # the explorer is a part of it
    assert 'href="#explorer"' in page
    assert 'id="explorer"' in page


def test_a_page_in_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    out = tmp_path / "new" / "page.html"
    prlstm("report", "--results", tmp_path / "results", "--out", out)
    assert out.is_file()


def test_without_rows_there_is_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "No folder results here" in prlstm("report")
    assert 'id="explorer"' in Path("report.html").read_text()
    Path("results").mkdir()
    append_rows(Path("results") / SCORES, [score_row(score=1.0)])
    assert "No folder" not in prlstm("report")
    assert "PR-LSTM solves 1 of the 6 tasks" in Path("report.html").read_text()


def test_wrong_use(tmp_path: Path) -> None:
    results, out = tmp_path / "results", tmp_path / "page.html"
    asked = ["report", "--results", results, "--out", out]
    assert "no such folder, expected one with rows" in in_a_line(prlstm(*asked, code=1))
    results.mkdir()
    text = prlstm("report", "--results", results, "--out", tmp_path, code=1)
    assert "Is a directory" in in_a_line(text)
    append_rows(results / SCORES, [score_row() | {"schema": 2}])
    assert "scores.jsonl, line 1: schema=2, expected 1" in in_a_line(prlstm(*asked, code=1))
    assert not out.exists()
