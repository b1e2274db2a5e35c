"""Even Pairs.

>>> from prlstm import tasks
>>> task = tasks.get("even_pairs")
>>> task.label([0, 1, 1])  # 01: one, odd
[1]
>>> task.label([0, 0, 1, 0, 0])  # 01, 10: two, even
[0]
>>> task.label([1])  # no neighbours
[0]
"""

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor

from prlstm.tasks.floors import Floors
from prlstm.tasks.task import Task
from prlstm.tasks.uniform import pick


class EvenPairs(Task):
    """Whether the unequal neighbours in a word of bits are even (class 0) or odd (1) in number."""

    name, paper_name, level = "even_pairs", "Even Pairs", "R"
    symbols, answer_symbols = "01", "01"
    floors = Floors(uniform=0.5, constant=0.5, position=0.5)

    def label(self, word: Sequence[int]) -> list[int]:
        """Size the neighbours that differ."""
        return [sum(left != right for left, right in pairwise(word)) % 2]

    def draw(self, numbers: Tensor, n: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """Free bits. Every change is undone by the next: the ends decide."""
        word = pick(numbers, 2)
        return word, word[:, :1] ^ word.gather(1, n[:, None] - 1)
