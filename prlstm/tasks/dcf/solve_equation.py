"""Solve Equation.

>>> from prlstm import tasks
>>> task = tasks.get("solve_equation")
>>> task.show([7, 3, 5, 9, 8, 10, 2]), task.label([7, 3, 5, 9, 8, 10, 2])
('(3 + x) = 2', [4])
>>> task.show([6, 9, 10, 1]), task.label([6, 9, 10, 1])
('-x = 1', [4])
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from prlstm.tasks.expressions import draw_expressions
from prlstm.tasks.floors import Floors
from prlstm.tasks.grammar import MODULUS, evaluate, spaced
from prlstm.tasks.task import Task
from prlstm.tasks.uniform import pick, positions

UNKNOWN, EQUALS = 9, 10


class SolveEquation(Task):
    """The digit that x stands for in an equation modulo 5.

    A word is an expression as in Modular Arithmetic, but of sums and differences only, in which
    one digit is x, then =, then the value. Words of one or two tokens are zeros, and so is their
    answer.
    """

    name, paper_name, level = "solve_equation", "Solve Equation", "DCF"
    symbols, answer_symbols = "01234+-()x=", "01234"
    floors = Floors(uniform=0.2, constant=0.2, position=0.2)

    def draws(self, n: int) -> int:
        """The first number is where the search for the unknown begins."""
        return n + 1

    def show(self, tokens: Tensor | Sequence[int]) -> str:
        """One word as a person reads it."""
        return spaced(super().show(tokens))

    def label(self, word: Sequence[int]) -> list[int]:
        """Try every digit: without products exactly one fits."""
        if len(word) < 3 and not any(word):
            return [0]
        text = "".join(self.symbols[token] for token in word)
        left, equals, right = text[:-2], text[-2:-1], text[-1:]
        if left.count("x") != 1 or equals != "=" or not right.isdigit():
            raise ValueError("expected an expression with one x, then = and a digit")
        values = [evaluate(left.replace("x", str(digit))) for digit in range(MODULUS)]
        return [values.index(int(right))]

    def draw(self, numbers: Tensor, n: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """An expression two tokens shorter; the next digit from a free place on is the unknown."""
        width, size, length = max(1, longest - 2), (n - 2).clamp(min=1), n[:, None]
        drawn, value = draw_expressions(numbers[:, 1:], size, width, operators=2)
        place = positions(width, numbers)
        ahead = (place - pick(numbers[:, 0], size)[:, None]) % size[:, None]
        digit = (drawn < MODULUS) & (place < size[:, None])
        unknown = torch.where(digit, ahead, longest).argmin(1, keepdim=True)
        answer = drawn.gather(1, unknown)
        left = pad(torch.where(place == unknown, UNKNOWN, drawn), (0, longest - width))
        place = positions(longest, numbers)
        right = torch.where(place == length - 2, EQUALS, value[:, None])
        word = torch.where(place < length - 2, left, right)
        # too short for an equation
        return word * (length > 2), answer * (length > 2)
