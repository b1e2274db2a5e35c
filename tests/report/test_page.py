"""The page as a text: what is in it, that it is whole, that all texts in it are texts."""

import json
import re
import shutil
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from prlstm.files import append_rows
from prlstm.report.explorer import ExplorerSection
from prlstm.report.page import build_page
from prlstm.report.rows import SCORES
from tests.report.hostile import TEXTS, write_hostile
from tests.report.made import score_row
from tests.report.made_results import write_results

VOID = {"meta", "link", "col", "input", "img", "br", "path", "rect"}


class Parsed(HTMLParser):
    """Tags and texts in order; tags must be closed as they were opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def values(self, name: str) -> list[str]:
        return [value for _, known in self.tags if (value := known.get(name))]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("full")
    write_results(folder, seeds=2)
    return folder


@pytest.fixture(scope="module")
def full(results: Path) -> str:
    return build_page(results)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("hostile")
    write_hostile(folder)
    return build_page(folder)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> str:
    return build_page(tmp_path_factory.mktemp("empty"))


@pytest.mark.parametrize("name", ["full", "hostile", "empty"])
def test_the_page_is_whole(name: str, request: pytest.FixtureRequest) -> None:
    text = request.getfixturevalue(name)
    page = Parsed(text)
    ids = page.values("id")
    assert len(set(ids)) == len(ids)
    # references lead somewhere, and nowhere else
    anchors = page.values("href")
    assert {one[1:] for one in anchors if one != "data:,"} <= set(ids)
    labels = [part for one in page.values("aria-labelledby") for part in one.split()]
    assert set(labels) <= set(ids)
    assert page.values("src") == []
    assert "http:" not in text
    assert "https:" not in text
    assert "@import" not in text
    assert "url(" not in text
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert len(text) < 6e6


@pytest.mark.parametrize("name", ["full", "hostile"])
def test_every_picture_is_told_in_words(name: str, request: pytest.FixtureRequest) -> None:
    text = request.getfixturevalue(name)
    pictures = re.findall(r'<svg viewBox="0 0 360 250".*?</svg>', text, re.DOTALL)
    assert len(pictures) > 60
    for picture in pictures:
        said = re.search(r"<desc[^>]*>([^<]{40,})</desc>", picture)
        assert 'role="img"' in picture
        assert said is not None
        assert " over " in said[1]


def test_tables_have_paper_and_ours_side_by_side(full: str) -> None:
    page = Parsed(full).text
    # the paper's and the best seed's of Parity Check and PR-LSTM
    assert "PR-LSTM solves 6 of the 6 tasks that it solves in the paper" in page
    assert "30 runs of 1M steps (the paper: 1M) on NVIDIA H200" in page
    row = re.search(
        r'<tr><th scope="row">Modular Arithmetic \(Simple\)</th>.*?</tr>', full, re.DOTALL
    )
    assert row is not None
    cells = [" ".join(re.sub("<[^>]+>", " ", cell).split())
             for cell in re.findall(r"<td.*?</td>", row[0], re.DOTALL)]  # fmt: skip
    assert cells[0] == "20.0"
    assert len(cells) == 1 + 2 * 6
    assert cells[11] == "99.7"
    assert re.fullmatch(r"\d+\.\d ✓ solved \d+\.\d · [12]/2 · 1M", cells[12])
    assert "Tape-RNN 2R" not in page
    assert page.count("PR-RNN 2R") >= 15


def test_every_row_says_where_it_was_made(full: str) -> None:
    page = Parsed(full).text
    assert "[1] NVIDIA H200 16 3.12.3 2.11.0+cu130 13.0 0.1.0 abc1234 2026-01-02" in page
    assert "[2] AMD EPYC 2 3.12.3 2.13.0+cpu none 0.1.0 abc1234 2026-01-02" in page
    assert "parity_check-pr_lstm-s1" in page


def test_with_no_rows_it_says_what_to_run(empty: str) -> None:
    page = Parsed(empty).text
    assert "No PR-LSTM of the paper's settings has been scored yet." in page
    assert "prlstm reproduce table2 --models pr_lstm,lstm --budget 20m is a first look" in page
    for command in ("table3", "figure3 --all", "figure4", "shipped"):
        assert f"There are no rows of this yet. prlstm reproduce {command} makes them" in page
    assert "There are no times and gradients yet. prlstm reproduce table1 makes them" in page
    # what others have measured, and what is counted, needs no rows
    assert "NVIDIA H200, others" in page
    assert "cuDNN LSTM, bfloat16" in page
    assert "PR-LSTM, all states log T + T/p 8,178 22" in page


def test_every_part_says_what_its_rows_are_made_by(full: str, tmp_path: Path) -> None:
    """Of the runs that it shows, and how many of its rows there are."""
    made = [score_row(seed=1), score_row(seed=2), score_row(refine=2), score_row(hidden_size=16)]
    append_rows(tmp_path / SCORES, made)
    page = Parsed(build_page(tmp_path)).text
    again = page.partition("How to make it again")[2]
    every = "prlstm reproduce table2 , prlstm reproduce table3 , prlstm reproduce shipped"
    for said in (
        "Table 2: main results prlstm reproduce table2 scores.jsonl 2 ",
        # one of its columns is Table 2's
        "Table 3: ablation prlstm reproduce table3 scores.jsonl 3 ",
        "Other settings prlstm reproduce shipped scores.jsonl 1 ",
        f"Accuracy over length {every} scores.jsonl 4 ",
        "Training curves prlstm reproduce table2 curves.jsonl 0 ",
    ):
        assert said in again, said
    assert f"Rows: scores.jsonl . Made by {every} , by sweeps and trials." in page
    other = tmp_path / "other"
    other.mkdir()
    append_rows(other / SCORES, made[3:])
    page = Parsed(build_page(other)).text
    assert "Accuracy over length prlstm reproduce shipped scores.jsonl 1 " in page
    # the curves of others stand beside ours, and only there
    assert "cuDNN LSTM, bfloat16" in Parsed(full).text
    assert "NVIDIA H200, others" not in Parsed(full).text


def test_hostile_texts_are_texts(hostile: str) -> None:
    page = Parsed(hostile)
    assert {tag for tag, _ in page.tags}.isdisjoint({"img", "iframe", "object"})
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    assert not any(name.startswith("on") for _, known in page.tags for name in known)
    whole = "".join(page.texts)
    for text in TEXTS:
        # in the list of runs, of failures, of settings, of origins, in charts
        assert whole.count(text.replace("\0", "\ufffd")) + whole.count(text) >= 5, text


def test_only_its_own_scripts_may_run(empty: str, tmp_path: Path) -> None:
    section = ExplorerSection("<p id='explorer'>here</p>", "p { margin: 0 }", "let x = '<' + 1;")
    page = build_page(tmp_path, section)
    assert "<p id='explorer'>here</p>" in page
    assert "p { margin: 0 }" in page
    assert "<script>let x = '<' + 1;</script>" in page
    policies = [re.search(r'Policy" content="([^"]+)"', one) for one in (empty, page)]
    hashes = [one[1].count("sha256-") for one in policies if one]
    assert hashes == [1, 2]
    assert "'unsafe-inline'; img-src" in page.replace("&#39;", "'")


def test_equal_rows_make_an_equal_page(results: Path, full: str, tmp_path: Path) -> None:
    shutil.copytree(results, tmp_path / "elsewhere")
    assert build_page(tmp_path / "elsewhere") == full


def test_a_single_small_run(tmp_path: Path) -> None:
    setting = {"hidden_size": 16, "schedule.kind": "cosine"}
    append_rows(tmp_path / SCORES, [score_row(score=1.0, step=3000, **setting)])
    page = Parsed(build_page(tmp_path)).text
    assert "No PR-LSTM of the paper's settings has been scored yet." in page
    assert (
        "With other settings, mostly smaller, 1 of 1 task tried is solved (Parity Check): at least "
        "one seed answers 90 % or more at lengths 41 to 500. Behind this stands 1 run of 3k steps "
        "(the paper: 1M) on a device."
    ) in page
    assert "Parity Check PR-LSTM hidden_size 16, schedule.kind cosine 100.0 100.0" in page
    assert "Best run of each model with other settings" in page


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 7}, "line 1: schema=7, expected 1"),
        ({"made_with": "here"}, "line 1: made_with='here', expected an object"),
        ({"setting": None}, "line 1: setting=None, expected an object of settings"),
        ({"score": ...}, "line 1: no score, expected a number from 0 to 1"),
        ({"run": ..., "step": ...}, "line 1: no run, expected a text"),
    ],
)
def test_rows_that_are_none(change: dict[str, object], message: str, tmp_path: Path) -> None:
    row = {k: v for k, v in (score_row() | change).items() if v is not ...}
    (tmp_path / SCORES).write_text(json.dumps(row) + "\n")
    with pytest.raises(ValueError, match=re.escape(message)):
        build_page(tmp_path)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"results='.*none': no such folder, expected"):
        build_page(tmp_path / "none")
