"""The command line."""

import dataclasses

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


def test_tasks_are_listed() -> None:
    lines = said("tasks").splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in lines[1:16]}
    assert list(rows) == prlstm.tasks.names()
    assert rows["bucket_sort"] == ["CS", "5", "5", "40", "20.0%", "20.0%", "90.1%"]
    assert rows["stack_manipulation"] == ["DCF", "5", "3", "41", "33.3%", "49.6%", "49.6%"]
    assert max(map(len, lines)) <= 80


def test_samples_are_shown() -> None:
    text = said("tasks", "show", "solve_equation", "--length", "12", "--samples", "3")
    assert text.startswith("Solve Equation (solve_equation, DCF)\nThe digit that x stands for")
    words = text.splitlines()[-3:]
    assert all(" = " in word and "x" in word for word in words)
    assert "word of 12" in text
    assert "tokens 0, 1, ...: 0  1  2  3  4  +  -  (  )  x  =" in text
    again = said("tasks", "show", "solve_equation", "--length", "12", "--samples", "3")
    assert text == again
    assert text != said("tasks", "show", "solve_equation", "--samples", "3", "--seed", "1")


def test_uncounted_answers_are_shown_as_dots() -> None:
    text = said("tasks", "show", "binary_addition", "--length", "5", "--samples", "1")
    answer = text.splitlines()[-3].split()[-1]
    assert len(answer) == 6
    assert answer.rstrip("·").endswith("$")
    assert "trained on but not scored" in text


@pytest.mark.parametrize("name", prlstm.tasks.names())
def test_the_shortest_words_are_shown(name: str) -> None:
    text = said("tasks", "show", name, "--length", "1")
    assert "word of 1" in text
    assert "not scored" not in text


def test_wrong_task() -> None:
    result = CliRunner().invoke(app, ["tasks", "show", "parity"])
    assert result.exit_code == 2
    assert "'parity_check'" in result.output


def test_models_are_listed() -> None:
    lines = said("models").splitlines()
    rows = {line.split()[0]: line.split() for line in lines[1:11]}
    assert list(rows) == prlstm.models.names()
    assert "923,394" in rows["pr_lstm"]
    assert rows["lstm"][-3:] == ["266,754", "T", "T"]
    assert max(map(len, lines)) <= 80
    assert "926,469" in said("models", "--task", "bucket_sort")
    assert CliRunner().invoke(app, ["models", "--task", "bucket"]).exit_code == 2


@pytest.mark.parametrize("name", prlstm.models.names())
def test_options_of_a_model_are_shown(name: str) -> None:
    text = said("models", "show", name)
    for field in dataclasses.fields(prlstm.models.kind(name).options):
        assert f"{field.name} = {field.default!r}" in text
        assert field.metadata["help"] in text


def test_wrong_model() -> None:
    result = CliRunner().invoke(app, ["models", "show", "lstmm"])
    assert result.exit_code == 2
    assert "'lstm'" in result.output
