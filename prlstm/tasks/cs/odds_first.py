"""Odds First.

>>> from prlstm import tasks
>>> tasks.get("odds_first").label([1, 0, 0, 1, 1])
[0, 1, 1, 0, 1]
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from prlstm.tasks.floors import Floors
from prlstm.tasks.task import Size, Task
from prlstm.tasks.uniform import pick, positions


class OddsFirst(Task):
    """Every second token, then the others.

    Counted from zero the odd places come first: the second token of the word, the fourth, and so
    on, then the first, the third, and so on.
    """

    name, paper_name, level = "odds_first", "Odds First", "CS"
    symbols, answer_symbols = "01", "01"
    floors = Floors(uniform=0.5, constant=0.5, position=0.5)

    def output_length(self, n: Size) -> Size:
        """As long as the word."""
        return n

    def label(self, word: Sequence[int]) -> list[int]:
        """Two slices."""
        return [*word[1::2], *word[::2]]

    def draw(self, numbers: Tensor, n: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """Free bits, and where each answer stands in the word."""
        word = pick(numbers, 2)
        answer, odds = positions(longest, word), n[:, None] // 2
        source = torch.where(answer < odds, 2 * answer + 1, 2 * (answer - odds))
        return word, word.gather(1, source.clamp(max=longest - 1))
