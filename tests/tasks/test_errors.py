"""Wrong use gets an error that names what was wrong."""

import re

import pytest
import torch

from prlstm import tasks

PARITY = tasks.get("parity_check")


def raises(kind: type[Exception], message: str) -> "pytest.RaisesExc[Exception]":
    return pytest.raises(kind, match=re.escape(message))


def test_unknown_task() -> None:
    with raises(ValueError, "name='parity_chek': no such task, did you mean 'parity_check'?"):
        tasks.get("parity_chek")
    with raises(ValueError, "There are: even_pairs, modular_arithmetic, parity_check"):
        tasks.get("?")
    with raises(ValueError, "name=['a']: no such task"):
        tasks.get(["a"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"batch_size": 0, "length": 4}, ValueError, "batch_size=0: expected an integer >= 1"),
        ({"batch_size": 4, "length": 0}, ValueError, "length=0: expected an integer >= 1"),
        ({"batch_size": 4, "length": -2}, ValueError, "length=-2: expected an integer >= 1"),
        ({"batch_size": 4, "length": 2.5}, TypeError, "length=2.5: expected an integer >= 1"),
        ({"batch_size": 4, "length": True}, TypeError, "length=True: expected an integer >= 1"),
        ({"batch_size": 4}, TypeError, "length=None: expected an integer >= 1"),
        ({}, TypeError, "expected batch_size and length, or lengths"),
        ({"lengths": [3, 0]}, ValueError, "lengths[1]=0: expected 1 <= length"),
        ({"lengths": []}, TypeError, "lengths=[]: expected integers"),
        ({"lengths": [[3]]}, ValueError, "lengths of shape (1, 1)"),
        ({"lengths": [1.5]}, TypeError, "lengths=[1.5]: expected integers"),
        ({"lengths": ["a"]}, TypeError, "lengths=['a']: expected integers"),
        ({"lengths": [3], "length": 3}, ValueError, "lengths= stands in place of"),
        (
            {"batch_size": 1, "length": 3, "generator": 3},
            TypeError,
            "generator=3: expected a torch",
        ),
    ],
)
def test_sample(arguments: dict[str, object], kind: type[Exception], message: str) -> None:
    with raises(kind, message):
        PARITY.sample(**arguments)  # type: ignore[arg-type]


def test_sample_from() -> None:
    with raises(ValueError, "numbers of shape (2, 5): expected (B, 4) for words of 4 tokens"):
        PARITY.sample_from(torch.rand(2, 5), 4)
    for shape in ((4,), (), (0, 4)):
        with raises(ValueError, f"numbers of shape {shape}: expected (B, draws), B >= 1"):
            PARITY.sample_from(torch.rand(shape), 4)
    with raises(ValueError, "longest=9: expected none where all rows have one length"):
        PARITY.sample_from(torch.rand(2, 4), 4, 9)
    with raises(TypeError, "longest='4': expected an integer >= 1"):
        PARITY.sample_from(torch.rand(2, 4), torch.tensor([1, 4]), "4")  # type: ignore[arg-type]
    with raises(ValueError, "lengths of shape (0,): expected 2 of them"):
        PARITY.sample_from(torch.rand(2, 4), torch.tensor([], dtype=torch.long))
    with raises(TypeError, "expected a tensor of float32 or float64"):
        PARITY.sample_from(torch.zeros(2, 4, dtype=torch.long), 4)
    with raises(TypeError, "expected a tensor of float32 or float64"):
        PARITY.sample_from([[0.5]], 1)  # type: ignore[arg-type]
    with raises(ValueError, "lengths of shape (3,): expected 2 of them"):
        PARITY.sample_from(torch.rand(2, 4), torch.tensor([1, 2, 4]))
    with raises(ValueError, "lengths[1]=5: expected 1 <= length <= 4"):
        PARITY.sample_from(torch.rand(2, 4), torch.tensor([1, 5]), 4)
    for number in (1.0, -0.1, float("nan")):
        with raises(ValueError, "numbers: expected 0 <= number < 1 everywhere"):
            PARITY.sample_from(torch.full((2, 4), number), 4)


@pytest.mark.parametrize(
    ("tokens", "lengths", "kind", "message"),
    [
        ([[0, 1, 2]], None, ValueError, "tokens[0, 2]=2: expected 0 <= token < 2"),
        ([[0, 1], [-1, 0]], None, ValueError, "tokens[1, 0]=-1: expected 0 <= token < 2"),
        ([0, 1], None, ValueError, "tokens of shape (2,): expected (B, L), both >= 1"),
        ([[[0, 1]]], None, ValueError, "tokens of shape (1, 1, 2): expected (B, L), both >= 1"),
        ([[]], None, TypeError, "expected integers"),
        ([[0.0, 1.0]], None, TypeError, "expected integers"),
        ([[True, False]], None, TypeError, "expected integers"),
        ([[0, 1], [1, 1]], [1], ValueError, "lengths of shape (1,): expected 2 of them"),
        ([[0, 1], [1, 1]], [1, 3], ValueError, "lengths[1]=3: expected 1 <= length <= 2"),
        ([[0, 1], [1, 1]], [0, 2], ValueError, "lengths[0]=0: expected 1 <= length <= 2"),
    ],
)
def test_target(
    tokens: list[object], lengths: list[int] | None, kind: type[Exception], message: str
) -> None:
    with raises(kind, message):
        PARITY.target(torch.tensor(tokens), lengths)


def test_target_of_no_tensor() -> None:
    with raises(TypeError, "tokens=[[0, 1]]: expected a tensor of integers (B, L)"):
        PARITY.target([[0, 1]])  # type: ignore[arg-type]
    with raises(ValueError, "tokens of shape (0, 4): expected (B, L), both >= 1"):
        PARITY.target(torch.zeros(0, 4, dtype=torch.long))


BETWEEN = "expected digits with one operator between each two"
ONE_EXPRESSION = "expected one expression"
UNKNOWN = "expected an expression with one x, then = and a digit"
TWICE = "expected some bits twice with one '?' among them"
TWO_NUMBERS = "expected two numbers in bits with one sign between them"


@pytest.mark.parametrize(
    ("name", "word", "message"),
    [
        ("modular_arithmetic", [3, 5], BETWEEN),
        ("modular_arithmetic", [3, 3, 3], BETWEEN),
        ("modular_arithmetic", [5, 3, 5], BETWEEN),
        ("modular_arithmetic", [3, 8, 3], BETWEEN),
        ("modular_arithmetic", [8], BETWEEN),
        ("modular_arithmetic_brackets", [1, 5, 2], ONE_EXPRESSION),
        ("modular_arithmetic_brackets", [8, 1, 5, 2], ONE_EXPRESSION),
        ("modular_arithmetic_brackets", [1, 9], "no expression ends with the bracket at token 1"),
        ("modular_arithmetic_brackets", [8, 9], "no expression ends with the bracket at token 1"),
        ("modular_arithmetic_brackets", [9], "no expression ends with the bracket at token 0"),
        (
            "modular_arithmetic_brackets",
            [8, 8, 3, 9, 9],
            "no expression ends with the bracket at token 4",
        ),
        ("modular_arithmetic_brackets", [6, 8, 3, 9], ONE_EXPRESSION),
        ("modular_arithmetic_brackets", [6, 6, 3], ONE_EXPRESSION),
        ("modular_arithmetic_brackets", [1, 2], ONE_EXPRESSION),
        ("modular_arithmetic_brackets", [6], ONE_EXPRESSION),
        ("modular_arithmetic_brackets", [10], ONE_EXPRESSION),
        ("modular_arithmetic_brackets", [8, 1, 5, 7, 2, 9], "no expression ends with the bracket"),
        ("modular_arithmetic_brackets", [8, 1, 10, 2, 9], "no expression ends with the bracket"),
        ("modular_arithmetic_brackets", [8, 1, 5, 2, 5, 3, 9], "no expression ends with"),
        ("solve_equation", [0, 1], UNKNOWN),
        ("solve_equation", [3, 10, 3], UNKNOWN),
        ("solve_equation", [9, 10, 9], UNKNOWN),
        ("solve_equation", [9, 10, 10], UNKNOWN),
        ("solve_equation", [9, 3, 3], UNKNOWN),
        ("solve_equation", [7, 9, 5, 9, 8, 10, 2], UNKNOWN),
        ("solve_equation", [9, 5, 1, 10, 2], ONE_EXPRESSION),
        ("stack_manipulation", [0, 2, 1], "expected the content of the stack before all actions"),
        ("missing_duplicate_string", [0], TWICE),
        ("missing_duplicate_string", [0, 0], TWICE),
        ("missing_duplicate_string", [2, 2], TWICE),
        ("missing_duplicate_string", [2, 3], TWICE),
        ("missing_duplicate_string", [2, 0, 1, 1], TWICE),
        ("missing_duplicate_string", [2, 0, 1], TWICE),
        ("missing_duplicate_string", [3, 2, 0], TWICE),
        ("missing_duplicate_string", [2, 2, 0, 1], TWICE),
        ("binary_addition", [0, 1, 1], TWO_NUMBERS),
        ("binary_addition", [2, 1, 1], TWO_NUMBERS),
        ("binary_addition", [1, 1, 2], TWO_NUMBERS),
        ("binary_addition", [1, 2, 2, 1], TWO_NUMBERS),
        ("binary_addition", [2], TWO_NUMBERS),
        ("binary_multiplication", [1, 2], TWO_NUMBERS),
        ("binary_multiplication", [0, 1, 0, 1], TWO_NUMBERS),
    ],
)
def test_words_that_are_not_of_the_language(name: str, word: list[int], message: str) -> None:
    task = tasks.get(name)
    with raises(ValueError, f"tokens[0]={task.show(word)!r}: {message}"):
        task.target(torch.tensor([word]))


def test_the_row_is_named() -> None:
    task = tasks.get("modular_arithmetic")
    with raises(ValueError, "tokens[1]='1 + 2 + ': expected digits"):
        task.target(torch.tensor([[1, 5, 2, 5], [1, 5, 2, 5]]), lengths=[3, 4])


def test_deep_brackets_are_no_problem() -> None:
    text = "(1+" * 5000 + "2" + ")" * 5000
    word = ["01234+-*()".index(symbol) for symbol in text]
    assert tasks.get("modular_arithmetic_brackets").label(word) == [2]


def test_show() -> None:
    with raises(ValueError, "tokens of shape (1, 2): expected one word (L,)"):
        PARITY.show(torch.tensor([[0, 1]]))
    with raises(ValueError, "tokens[0, 1]=5: expected 0 <= token < 2"):
        PARITY.show([0, 5])

    with raises(TypeError, "tokens='01': expected integers"):
        PARITY.show("01")  # type: ignore[arg-type]
    with raises(TypeError, "tokens=None: expected integers"):
        PARITY.show(None)  # type: ignore[arg-type]


def test_mask() -> None:
    with raises(ValueError, "tokens of shape (2,): expected (B, L), both >= 1"):
        PARITY.mask(torch.tensor([0, 1]))


def test_floors() -> None:
    with raises(ValueError, "samples=100: expected a multiple of 64"):
        tasks.measure_floors(PARITY, samples=100)


def test_read() -> None:
    with raises(ValueError, "text='0120': '2' is none of 0 1"):
        PARITY.read("0120")


def test_split() -> None:
    with raises(TypeError, "rows=[1, 2]: expected an integer >= 1"):
        PARITY.sample(3, 4).split([1, 2])  # type: ignore[arg-type]


def test_tape() -> None:
    words = torch.tensor([[0, 1]])
    with raises(ValueError, "computation=-1: expected an integer >= 0"):
        tasks.tape(PARITY, words, computation=-1)
    with raises(ValueError, "computation=-1: expected an integer >= 0"):
        tasks.tape_size(PARITY, -1)
    with raises(TypeError, "computation=0.5: expected an integer >= 0"):
        tasks.tape(PARITY, words, computation=0.5)  # type: ignore[arg-type]
    with raises(ValueError, "tokens of shape (2,): expected (B, L), both >= 1"):
        tasks.tape(PARITY, words[0])
    with raises(TypeError, "expected integers"):
        tasks.tape(PARITY, words.float())
    with raises(ValueError, "lengths[0]=3: expected 1 <= length <= 2"):
        tasks.tape(PARITY, words, [3])
    with raises(ValueError, "earlier of shape (1, 2): expected (1, 1), all answers"):
        tasks.tape(PARITY, words, earlier=words)
    with raises(ValueError, "lengths of shape (2,): expected 1 of them"):
        tasks.tape(PARITY, words, torch.tensor([1, 1]))


def test_register() -> None:
    with raises(TypeError, "expected an instance of a subclass of prlstm.tasks.Task"):
        tasks.register(type(PARITY))  # type: ignore[arg-type]

    class Other(type(PARITY)):  # type: ignore[misc]
        """Another task under a name that is taken."""

    with raises(ValueError, "name='parity_check': another task has this name"):
        tasks.register(Other())
    assert tasks.get("parity_check") is PARITY
