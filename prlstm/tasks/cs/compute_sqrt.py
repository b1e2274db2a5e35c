"""Compute Sqrt.

>>> from prlstm import tasks
>>> task = tasks.get("compute_sqrt")
>>> task.label([0, 1, 0, 0, 1])  # 9
[0, 1, 1]
>>> task.label([1, 1, 1])  # 7
[1, 0]
"""

from collections.abc import Sequence
from math import isqrt

from torch import Tensor

from prlstm.tasks.binary import number
from prlstm.tasks.floors import Floors
from prlstm.tasks.root import square_root
from prlstm.tasks.task import Size, Task
from prlstm.tasks.uniform import nonzero_bits


class ComputeSqrt(Task):
    """The whole part of the square root of a number in bits, highest bit first.

    The answer has half as many bits as the word (rounded up), zeros at its high end included. The
    number is never zero: the word of length 1 is always 1.
    """

    name, paper_name, level = "compute_sqrt", "Compute Sqrt", "CS"
    symbols, answer_symbols = "01", "01"
    floors = Floors(uniform=0.5, constant=0.502, position=0.504)

    def output_length(self, n: Size) -> Size:
        """Half as long as the word, rounded up."""
        return (n + 1) // 2

    def label(self, word: Sequence[int]) -> list[int]:
        """Take the root of a whole number of any size."""
        root = isqrt(number(word[::-1]))
        return [int(bit) for bit in f"{root:0{self.output_length(len(word))}b}"]

    def draw(self, numbers: Tensor, n: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """A free number, zero excluded, and its root."""
        word = nonzero_bits(numbers, n)
        return word, square_root(word, n)
