"""`prlstm inspect` as a user types it."""

import re
from pathlib import Path

import pytest
import torch

from prlstm import models
from prlstm.cli.inspect import _percent
from prlstm.models import Model
from prlstm.models.inspection import inspect
from prlstm.models.pr import PRNetwork
from tests.cli.command import in_a_line, prlstm


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    models.save(models.build("pr_lstm", "bucket_sort", hidden_size=4, seed=0), path)
    return path


@torch.no_grad()
def norm(model: Model, cells: list[int]) -> str:
    """That of the state after some cells: of a block too, if there are 2^k of them."""
    network = model.network
    assert isinstance(network, PRNetwork)
    h, _ = network.layer(torch.tensor([cells]), output="last")
    return f"{float(h.norm()):.2f}"


def numbers(line: str) -> list[str]:
    return re.findall(r"\d+\.\d\d", line)


def test_the_tree_with_its_norms_and_an_answer_for_each_prefix() -> None:
    text = prlstm("inspect", "parity_check", "0110100")
    assert "on Parity Check: 7 tokens, 8 cells" in text
    drawn = text.partition("are read):")[2].split("\n")[2:]
    assert drawn[0].split() == list("0110100_")
    model = models.load("parity_check")
    cells = inspect(model, model.task.read("0110100")).cells
    for line, spans in zip(
        drawn[1:7],
        (
            [(k, k + 1) for k in range(8)],
            [(0, 2), (2, 4), (4, 6), (6, 8)],
            [(0, 4), (4, 8)],
            [(0, 8)],
            [(0, 6)],
            [(0, 3), (0, 5), (0, 7)],
        ),
        strict=True,
    ):
        assert numbers(line) == [norm(model, cells[first:stop]) for first, stop in spans], line
    answers = [line.split() for line in text.partition("if the word ended there")[2].splitlines()]
    said = [line for line in answers if line and line[0].isdigit()]
    assert [line[:2] + line[3:] for line in said] == [
        [str(count), str("0110100"[:count].count("1") % 2), "right"] for count in range(1, 8)
    ]


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


def test_every_node_of_a_tree_that_is_too_wide_is_listed() -> None:
    word = "01101" * 9
    text = prlstm("inspect", "parity_check", word)
    assert "drawn, or of this one on a wider terminal" in text
    model = models.load("parity_check")
    cells = inspect(model, model.task.read(word)).cells
    expected = {
        "leaves": [cells[k : k + 1] for k in range(46)],
        "blocks of 2 cells": [cells[k : k + 2] for k in range(0, 45, 2)],
        "blocks of 16 cells": [cells[:16], cells[16:32]],
        "blocks of 32 cells": [cells[:32]],
        "states after every cell": [cells[:count] for count in range(1, 47)],
    }
    listed = text.partition("are read):")[2].partition("(The tree")[0].strip().splitlines()
    found: dict[str, list[str]] = {}
    said: dict[str, str] = {}
    for line in listed:
        name, colon, told = line.partition(":")
        if colon:
            found[name] = here = []
            said[name] = told
            continue
        first, *norms = line.split()
        # a line begins with the number of its first node
        assert int(first) == len(here) + 1
        here += norms
    assert set(expected) < set(found)
    for name, nodes in expected.items():
        assert found[name] == [norm(model, node) for node in nodes], name
        in_order = sorted(found[name], key=float)
        assert f" {len(nodes)}, from {in_order[0]} to {in_order[-1]}, mean" in said[name]
    assert len(max(listed, key=len)) <= 100


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
