"""Duplicate String.

>>> from prlstm import tasks
>>> tasks.get("duplicate_string").label([0, 1, 0])
[0, 1, 0, 0, 1, 0]
"""

from collections.abc import Sequence

from torch import Tensor

from prlstm.tasks.floors import Floors
from prlstm.tasks.task import Size, Task
from prlstm.tasks.uniform import pick, positions


class DuplicateString(Task):
    """The word twice."""

    name, paper_name, level = "duplicate_string", "Duplicate String", "CS"
    symbols, answer_symbols = "01", "01"
    floors = Floors(uniform=0.5, constant=0.5, position=0.5)

    def output_length(self, n: Size) -> Size:
        """Twice the word."""
        return 2 * n

    def label(self, word: Sequence[int]) -> list[int]:
        """The word, and the word."""
        return [*word, *word]

    def draw(self, numbers: Tensor, n: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """Free bits, read round and round."""
        word = pick(numbers, 2)
        return word, word.gather(1, positions(2 * longest, word) % n[:, None])
