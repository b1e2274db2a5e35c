"""Reverse String.

>>> from prlstm import tasks
>>> tasks.get("reverse_string").label([1, 1, 0, 0, 0])
[0, 0, 0, 1, 1]
"""

from collections.abc import Sequence

from torch import Tensor

from prlstm.tasks.floors import Floors
from prlstm.tasks.task import Size, Task
from prlstm.tasks.uniform import pick, positions


class ReverseString(Task):
    """The word from its end to its beginning."""

    name, paper_name, level = "reverse_string", "Reverse String", "DCF"
    symbols, answer_symbols = "01", "01"
    floors = Floors(uniform=0.5, constant=0.5, position=0.5)

    def output_length(self, n: Size) -> Size:
        """As long as the word."""
        return n

    def label(self, word: Sequence[int]) -> list[int]:
        """Back to front."""
        return list(reversed(word))

    def draw(self, numbers: Tensor, n: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """Free bits, read from every row's own end."""
        word = pick(numbers, 2)
        return word, word.gather(1, (n[:, None] - 1 - positions(longest, word)).clamp(min=0))
