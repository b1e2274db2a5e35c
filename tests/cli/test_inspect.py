"""`prlstm inspect` as a user types it."""

from pathlib import Path

import pytest

from prlstm import models
from prlstm.cli.inspect import _percent
from prlstm.models import Model
from prlstm.models.inspection import inspect
from tests.cli.command import in_a_line, prlstm


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    models.save(models.build("pr_lstm", "bucket_sort", hidden_size=4, seed=0), path)
    return path


def norms(model: Model, word: str) -> list[str]:
    """Of the leaves."""
    seen = inspect(model, model.task.read(word))
    return [f"{float(seen.block(0, k)[0].norm()):.2f}" for k in range(len(seen.cells))]


def test_the_tree_with_its_norms_and_an_answer_for_each_prefix() -> None:
    text = prlstm("inspect", "parity_check", "0110")
    assert "on Parity Check: 4 tokens, 5 cells" in text
    drawn = text.partition("are read):")[2].split("\n")[2:]
    assert drawn[0].split() == list("0110_")
    assert drawn[1].split() == ["leaf", *norms(models.load("parity_check"), "0110")]
    answers = [line.split() for line in text.partition("if the word ended there")[2].splitlines()]
    said = [line for line in answers if line and line[0].isdigit()]
    assert [line[:2] + line[3:] for line in said] == [
        ["1", "0", "right"], ["2", "1", "right"], ["3", "0", "right"], ["4", "0", "right"],
    ]  # fmt: skip


def test_an_answer_of_several_signs(folder: Path) -> None:
    text = prlstm("inspect", folder, "2 1 3")
    seen = inspect(models.load(folder), [2, 1, 3])
    task = models.load(folder).task
    last = text.strip().splitlines()[-1]
    assert task.show_answer(seen.answers[-1].classes) in last
    assert ("right" in last) == (seen.answers[-1].classes == seen.answers[-1].truth)
    # shares stand below each other
    ends = [line.index("%") for line in text.strip().splitlines()[-3:]]
    assert len(set(ends)) == 1


def test_one_is_not_said_as_many() -> None:
    assert "on Parity Check: 1 token, 2 cells, 1 merge, 1 deep" in prlstm(
        "inspect", "parity_check", "0"
    )


def test_no_share_below_one_is_said_to_be_all() -> None:
    assert [_percent(share) for share in (1.0, 0.999999, 0.5)] == ["100.00%", ">99.99%", "50.00%"]


def test_a_tree_that_is_too_wide_is_told_level_by_level() -> None:
    text = prlstm("inspect", "parity_check", "01" * 40)
    assert "blocks of 64" in text
    assert "drawn, or of this one on a wider terminal" in text
    assert "prefixes" in text


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("01x", "'x' is none of 0 1"),
        ("", "the word is empty"),
        ("0" * 501, "the word has 501 tokens: expected 1 to 500"),
    ],
)
def test_what_is_no_word(word: str, message: str) -> None:
    assert message in in_a_line(prlstm("inspect", "parity_check", word, code=1))


@pytest.mark.parametrize("word", ["-+.+", "--.", "-", "+-"])
def test_a_word_may_begin_like_an_option(word: str, tmp_path: Path) -> None:
    models.save(models.build("pr_lstm", "cycle_navigation", hidden_size=4, seed=0), tmp_path)
    assert f": {len(word)} token" in prlstm("inspect", tmp_path, word, "--device", "cpu")
    assert "unexpected extra" in prlstm("inspect", tmp_path, word, "--dvice", "cpu", code=2)


def test_unknown_models() -> None:
    text = in_a_line(prlstm("inspect", "zzz", "01", code=1))
    assert "'zzz': no such folder, and no run in runs" in text
    assert "with the package come" in text
    text = in_a_line(prlstm("inspect", "parity_chekc", "01", code=1))
    assert "'parity_chekc': no such model, did you mean parity_check?" in text
