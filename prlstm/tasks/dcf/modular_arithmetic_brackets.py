"""Modular Arithmetic.

>>> from prlstm import tasks
>>> task = tasks.get("modular_arithmetic_brackets")
>>> task.show([8, 1, 5, 6, 0, 9]), task.label([8, 1, 5, 6, 0, 9])
('(1 + -0)', [1])
>>> word = [8, 3, 7, 8, 2, 6, 4, 9, 9]
>>> task.show(word), task.label(word)
('(3 * (2 - 4))', [4])
>>> task.label([6, 3])  # -3
[2]
"""

from collections.abc import Sequence

from torch import Tensor

from prlstm.tasks.expressions import draw_expressions
from prlstm.tasks.floors import Floors
from prlstm.tasks.grammar import evaluate, spaced
from prlstm.tasks.task import Task


class ModularArithmeticBrackets(Task):
    """The value of an expression with brackets, modulo 5.

    An expression is d, -d, (d) or (-d) with a digit d, for one to four tokens; from five tokens on
    it is two expressions with an operator between them, all in brackets. The token _ is reserved
    and never drawn.
    """

    name, paper_name, level = "modular_arithmetic_brackets", "Modular Arithmetic", "DCF"
    symbols, answer_symbols = "01234+-*()_", "01234"
    floors = Floors(uniform=0.2, constant=0.31, position=0.31)

    def show(self, tokens: Tensor | Sequence[int]) -> str:
        """One word as a person reads it."""
        return spaced(super().show(tokens))

    def label(self, word: Sequence[int]) -> list[int]:
        """Parse and evaluate."""
        return [evaluate("".join(self.symbols[token] for token in word))]

    def draw(self, numbers: Tensor, n: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """Expressions with all three operators."""
        word, value = draw_expressions(numbers, n, longest, operators=3)
        return word, value[:, None]
