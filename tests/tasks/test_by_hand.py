"""Answers worked out by hand, at the edges of every task."""

from math import isqrt

import pytest
import torch

from prlstm import tasks
from prlstm.tasks.binary import carried, number, product
from prlstm.tasks.root import square_root

# words as they are shown below, answers as classes
ALPHABETS = {
    "stack_manipulation": {"0": 0, "1": 1, "o": 2, "n": 3, "i": 4},
    "cycle_navigation": {"-": 0, "0": 1, "+": 2},
    "missing_duplicate_string": {"0": 0, "1": 1, "?": 2, ".": 3},
    "binary_addition": {"0": 0, "1": 1, "+": 2},
    "binary_multiplication": {"0": 0, "1": 1, "*": 2},
    "modular_arithmetic": {symbol: token for token, symbol in enumerate("01234+-*")},
    "modular_arithmetic_brackets": {symbol: token for token, symbol in enumerate("01234+-*()")},
    "solve_equation": {symbol: token for token, symbol in enumerate("01234+-()x=")},
}
DIGITS = {symbol: token for token, symbol in enumerate("01234")}

CASES = {
    "even_pairs": {
        "0": "0", "1": "0", "00": "0", "01": "1", "10": "1", "11": "0", "011": "1", "010": "0",
        "0101": "1", "00100": "0", "00000000": "0", "11111111": "0", "10000000": "1",
    },
    "modular_arithmetic": {
        "0": "0", "4": "4", "3+3": "1", "1-2": "4", "0-1": "4", "2*3": "1", "2-1*2+1": "1",
        "1-2-3": "1", "4*4*4": "4", "0*0*0": "0", "1*1*1": "1", "2-0*3": "2", "0-2*2": "1",
        "1+2*3*4-4": "1", "3*0+2": "2", "2+3*0": "2", "4-4*4": "3",
    },
    "parity_check": {
        "0": "0", "1": "1", "10": "1", "11": "0", "0110": "0", "01101": "1", "111": "1",
        "00000000": "0", "11111111": "0",
    },
    "cycle_navigation": {
        "0": "0", "-": "4", "+": "1", "+0+": "2", "-0-+": "4", "+++++": "0", "-----": "0",
        "++++++": "1", "0000": "0", "-+": "0", "--": "3",
    },
    "stack_manipulation": {
        # o pops, n pushes 0, i pushes 1
        "0": "02", "1": "12", "0i": "102", "1o": "200", "0io": "0200", "10ooi": "120000",
        # empty, emptied twice, filled again
        "1oo": "2000", "11oooo": "2000000", "1oon": "02000", "1ooin": "012000",
        "000": "0002", "111": "1112", "011": "1102", "1nini": "101012", "01oi": "10200",
    },
    "reverse_string": {
        "0": "0", "1": "1", "10": "01", "011": "110", "11000": "00011", "000": "000", "111": "111",
    },
    "modular_arithmetic_brackets": {
        "3": "3", "-3": "2", "-0": "0", "(3)": "3", "(-3)": "2", "(1*2)": "2", "(1+-0)": "1",
        "(3-(-2))": "0", "(3--2)": "0", "(-2+3)": "1", "(3*(2-4))": "4", "((1+2)*(3-4))": "2",
        "((-1)-(-1))": "0", "(0*((4*4)*4))": "0", "(4-(3-(2-1)))": "2", "(((4-3)-2)-1)": "3",
    },
    "solve_equation": {
        "0": "0", "00": "0", "x=2": "2", "x=0": "0", "-x=1": "4", "-x=0": "0", "(x)=3": "3",
        "(-x)=3": "2",
        # the unknown first and last
        "(3+x)=2": "4", "(x+3)=2": "4", "(x-1)=4": "0", "(1-x)=4": "2",
        "((1-2)-(x-4))=0": "3", "((1-2)-(4-x))=0": "0", "(x-(-3))=1": "3", "(0--x)=4": "4",
    },
    "duplicate_string": {
        "0": "00", "1": "11", "10": "1010", "010": "010010", "000": "000000", "111": "111111",
    },
    "missing_duplicate_string": {
        "1": "1", "?0": "0", "?1": "1", "0?": "0", "1?": "1", "?1.": "1", "0?.": "0",
        "0010?1": "0", "0?00": "0", "111?": "1", "?111": "1", "01?1.": "0",
    },
    "odds_first": {
        "0": "0", "1": "1", "10": "01", "011": "101", "10011": "01101", "000": "000", "111": "111",
        "1010": "0011", "0101": "1100",
    },
    "binary_addition": {
        "0": "02", "00": "020", "10": "120", "01": "012", "11": "112",
        "1+1": "0120", "0+0": "0200", "01+1": "11200", "110+1": "001200", "1+110": "001200",
        # a carry through all bits
        "1111+1": "0000120", "1+1111": "0000120", "111+111": "01112000",
        "10+100": "0120000", "0001+0001": "0000120000",
    },
    "binary_multiplication": {
        "0": "2", "00": "02", "10": "02", "01": "02", "1*1": "120", "0*1": "020", "1*11": "1120",
        "11*101": "111120", "11*11": "10012", "111*111": "1000112", "10*100": "120000",
        "01*01": "00120", "1111*1": "111120",
    },
    "compute_sqrt": {
        "0": "0", "1": "1", "00": "0", "01": "1", "10": "1", "11": "1", "001": "01", "111": "10",
        # 15, 16, 17; 24, 25, 26
        "1111": "11", "10000": "100", "10001": "100",
        "11000": "100", "11001": "101", "11010": "101", "01001": "011", "00000": "000",
        "11111111": "1111", "100000000": "10000",
    },
    "bucket_sort": {
        "0": "0", "4": "4", "30": "03", "212": "122", "03212": "01223", "000": "000", "444": "444",
        "43210": "01234",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", tasks.names())
def test_answers(name: str) -> None:
    task, alphabet = tasks.get(name), ALPHABETS.get(name, DIGITS)
    shortest = {1, 3} if name == "modular_arithmetic" else {1, 2, 3}
    assert shortest <= set(map(len, CASES[name]))
    for word, answer in CASES[name].items():
        tokens = [alphabet[symbol] for symbol in word]
        assert task.label(tokens) == [int(digit) for digit in answer], word
        target = task.target(torch.tensor([tokens], dtype=torch.int8))
        assert target.tolist() == [[int(digit) for digit in answer]], word


# among them those whose rest just fills its limbs
ROOTS = [1, 2, 1023, 2**26 - 1, 2**26, 2**31 + 12345, 2**55 - 1, 2**83 - 1, isqrt(2**109 - 1),
         isqrt(2**165 - 1), 3**155, 2**249 - 1]  # fmt: skip


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("off", [-1, 0, 1, "most"])
def test_squares_and_their_neighbours(root: int, off: int | str) -> None:
    """The batched root too, which samples use."""
    value = root * root + (2 * root if off == "most" else int(off))
    bits = [int(bit) for bit in f"{value:b}"]
    width = len(bits)
    want = [int(bit) for bit in f"{root - (off == -1):0{(width + 1) // 2}b}"]
    assert tasks.get("compute_sqrt").label(bits) == want
    assert square_root(torch.tensor([bits]), torch.tensor([width])).tolist() == [want]
    # beside a row of another length
    rows = torch.zeros(2, width + 9, dtype=torch.long)
    rows[0, :width] = torch.tensor(bits)
    rows[1, -1] = 1
    got = square_root(rows, torch.tensor([width, width + 9]))
    assert got[0, : len(want)].tolist() == want
    assert got[1].tolist() == [0] * (got.shape[1] - 1) + [1]


@pytest.mark.parametrize("width", [1, 2, 3, 40, 249, 1000])
def test_batched_arithmetic_at_its_edges(width: int) -> None:
    every_bit, one = [1] * width, [1] + [0] * (width - 1)
    mixed = [(5 * place // 3) % 2 for place in range(width)]
    pairs = [(a, b) for a in (every_bit, one, mixed) for b in (every_bit, one, mixed)]
    left, right = (torch.tensor([[*pair[side], *[0] * width] for pair in pairs]) for side in (0, 1))
    for (a, b), total, times in zip(
        pairs, carried(left + right).tolist(), product(left, right).tolist(), strict=True
    ):
        assert number(total) == number(a) + number(b)
        assert number(times) == number(a) * number(b)


@pytest.mark.parametrize(
    ("name", "word", "shown"),
    [
        ("modular_arithmetic", [3, 7, 2, 6, 4], "3 * 2 - 4"),
        ("modular_arithmetic_brackets", [8, 3, 7, 8, 2, 6, 4, 9, 9], "(3 * (2 - 4))"),
        ("modular_arithmetic_brackets", [8, 3, 6, 6, 2, 9], "(3 - -2)"),
        ("modular_arithmetic_brackets", [8, 8, 6, 1, 9, 6, 1, 9], "((-1) - 1)"),
        ("solve_equation", [7, 9, 6, 1, 8, 10, 2], "(x - 1) = 2"),
        ("solve_equation", [0, 0], "00"),
        ("stack_manipulation", [1, 2, 3, 4], "1 - +0 +1"),
        ("binary_multiplication", [1, 0, 2, 1], "10 * 1"),
        ("missing_duplicate_string", [1, 2, 3], "1?."),
        ("bucket_sort", [4, 0], "40"),
    ],
)
def test_words_are_shown(name: str, word: list[int], shown: str) -> None:
    task = tasks.get(name)
    assert task.show(word) == task.show(torch.tensor(word)) == shown
    assert task.read(shown) == task.read(shown.replace(" ", "")) == word


def test_answers_are_shown() -> None:
    assert tasks.get("binary_addition").show_answer([0, 1, 2, 0, 0]) == "01$··"
    assert tasks.get("reverse_string").show_answer([0, 1, 0]) == "010"
    assert tasks.get("solve_equation").show_answer(torch.tensor([3])) == "3"
