"""Binary Multiplication.

>>> from prlstm import tasks
>>> task = tasks.get("binary_multiplication")
>>> word = [1, 1, 2, 1, 0, 1]  # 3 * 5
>>> task.show(word), task.label(word), task.show_answer(task.label(word))
('11 * 101', [1, 1, 1, 1, 2, 0], '1111$·')
>>> task.label([0]), task.label([0, 1])
([2], [0, 2])
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from prlstm.tasks import binary
from prlstm.tasks.floors import Floors
from prlstm.tasks.task import Size, Task


class BinaryMultiplication(Task):
    """The product of two numbers in bits, lowest bit first.

    Words are those of Binary Addition, but the answer is only as long as the word. One token is
    answered by $, two tokens by 0 and $, whatever they are.
    """

    name, paper_name, level = "binary_multiplication", "Binary Multiplication", "CS"
    symbols, answer_symbols = ("0", "1", " * "), "01$"
    terminator = binary.END
    floors = Floors(uniform=1 / 3, constant=0.498, position=0.503)

    def output_length(self, n: Size) -> Size:
        """The product and its terminator."""
        return n

    def draws(self, n: int) -> int:
        """The first number is the place of the sign."""
        return n + 1

    def label(self, word: Sequence[int]) -> list[int]:
        """Multiply whole numbers of any size."""
        if len(word) < 3 and binary.SIGN not in word:
            return [0, binary.END][-len(word) :]
        left, right = binary.operands_of(word)
        answer = [*binary.written(left * right), binary.END]
        return answer + [0] * (len(word) - len(answer))

    def draw(self, numbers: Tensor, n: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """Two numbers, and their digits multiplied."""
        word, left, right = binary.draw_operands(numbers, n, longest)
        bits = binary.product(left, right)
        length = n[:, None]
        return word, binary.terminated(
            bits, torch.where(length < 3, length - 1, binary.size_of(bits))
        )
