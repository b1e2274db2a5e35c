"""The command line."""

import pytest
from typer.testing import CliRunner

import prlstm
from prlstm.cli import app


def said(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.output


def test_tree_is_drawn() -> None:
    text = said("tree", "13")
    numbers = [line.split()[-3:] for line in text.splitlines()[1:3]]
    assert numbers == [["19", "6", "5"], ["12", "5", "5"]]
    assert "up 3     │  │  │  ├──┼──┼──┼──●  │  │  │  │  │" in text
    assert "= (((((1 2) (3 4)) ((5 6) (7 8))) ((9 10) (11 12))) 13)" in text


def test_a_wide_tree_is_counted() -> None:
    text = said("tree", "1000000")
    assert "Too wide to draw" in text
    assert "up   1             500,000" in text


def test_version() -> None:
    assert said("--version") == f"prlstm {prlstm.__version__}\n"


@pytest.mark.parametrize("length", ["0", "-3", "many"])
def test_wrong_length(length: str) -> None:
    result = CliRunner().invoke(app, ["tree", "--", length])
    assert result.exit_code == 2
    assert "length" in result.output.lower()
