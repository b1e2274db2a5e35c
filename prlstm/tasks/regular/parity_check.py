"""Parity Check.

>>> from prlstm import tasks
>>> task = tasks.get("parity_check")
>>> task.label([1, 0])
[1]
>>> task.label([0, 1, 1, 0])
[0]
"""

from collections.abc import Sequence

from torch import Tensor

from prlstm.tasks.floors import Floors
from prlstm.tasks.task import Task
from prlstm.tasks.uniform import pick, positions


class ParityCheck(Task):
    """Whether the ones in a word of bits are even (class 0) or odd (1) in number."""

    name, paper_name, level = "parity_check", "Parity Check", "R"
    symbols, answer_symbols = "01", "01"
    floors = Floors(uniform=0.5, constant=0.5, position=0.5)

    def label(self, word: Sequence[int]) -> list[int]:
        """Size the ones."""
        return [list(word).count(1) % 2]

    def draw(self, numbers: Tensor, n: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """Free bits, and their sum."""
        word = pick(numbers, 2) * (positions(longest, numbers) < n[:, None])
        return word, word.sum(1, keepdim=True) % 2
