"""Binary Addition.

>>> from prlstm import tasks
>>> task = tasks.get("binary_addition")
>>> word = [1, 1, 0, 2, 1]  # 3 + 1
>>> task.show(word), task.label(word), task.show_answer(task.label(word))
('110 + 1', [0, 0, 1, 2, 0, 0], '001$··')
>>> task.label([0, 1])  # 2
[0, 1, 2]
"""

from collections.abc import Sequence

from torch import Tensor
from torch.nn.functional import pad

from prlstm.tasks import binary
from prlstm.tasks.floors import Floors
from prlstm.tasks.task import Size, Task


class BinaryAddition(Task):
    """The sum of two numbers in bits, lowest bit first.

    A word is a number, the sign, a number, each with zeros at its high end or not, but never zero.
    The answer has no zeros at its high end, and ends with $. Words of one or two tokens are one
    number, which may be zero but never all ones, and so is their answer.
    """

    name, paper_name, level = "binary_addition", "Binary Addition", "CS"
    symbols, answer_symbols = ("0", "1", " + "), "01$"
    terminator = binary.END
    floors = Floors(uniform=1 / 3, constant=0.5, position=0.5)

    def output_length(self, n: Size) -> Size:
        """The sum and its terminator."""
        return n + 1

    def draws(self, n: int) -> int:
        """The first number is the place of the sign."""
        return n + 1

    def label(self, word: Sequence[int]) -> list[int]:
        """Add whole numbers of any size."""
        if len(word) < 3 and binary.SIGN not in word:
            total = binary.number(word)
        else:
            total = sum(binary.operands_of(word))
        answer = [*binary.written(total), binary.END]
        return answer + [0] * (len(word) + 1 - len(answer))

    def draw(self, numbers: Tensor, n: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """Two numbers, and their digits added."""
        word, left, right = binary.draw_operands(numbers, n, longest)
        bits = binary.carried(pad(left + right, (0, 1)))
        return word, binary.terminated(bits, binary.size_of(bits))
