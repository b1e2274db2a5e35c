"""Modular Arithmetic (Simple).

>>> from prlstm import tasks
>>> task = tasks.get("modular_arithmetic")
>>> task.show([2, 6, 1, 7, 2, 5, 1]), task.label([2, 6, 1, 7, 2, 5, 1])
('2 - 1 * 2 + 1', [1])
>>> task.label([1, 6, 2])  # -1
[4]
>>> task.sample(3, 8).input.shape
torch.Size([3, 7])
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from prlstm.tasks.floors import Floors
from prlstm.tasks.grammar import MINUS, MODULUS, PLUS, TIMES
from prlstm.tasks.task import Size, Task
from prlstm.tasks.uniform import pick, positions


class ModularArithmetic(Task):
    """The value of an expression without brackets, modulo 5.

    A word is digit, operator, digit, ..., digit: its length is odd, and an even one that is asked
    for is rounded down. Multiplication goes first. The token _ is reserved and never drawn.
    """

    name, paper_name, level = "modular_arithmetic", "Modular Arithmetic (Simple)", "R"
    symbols, answer_symbols = (*"01234", " + ", " - ", " * ", "_"), "01234"
    floors = Floors(uniform=0.2, constant=0.2, position=0.2)

    def input_length(self, length: Size) -> Size:
        """The next odd number below, if it is even."""
        return length - 1 + length % 2

    def label(self, word: Sequence[int]) -> list[int]:
        """Sum the products, with whole numbers of any size."""
        digits, operators = word[::2], word[1::2]
        if len(word) % 2 == 0 or max(digits) > 4:
            raise ValueError("expected digits with one operator between each two")
        total, product = 0, digits[0]
        for operator, digit in zip(operators, digits[1:], strict=True):
            if operator == TIMES:
                product *= digit
            elif operator in (PLUS, MINUS):
                total, product = total + product, digit if operator == PLUS else -digit
            else:
                raise ValueError("expected digits with one operator between each two")
        return [(total + product) % MODULUS]

    def draw(self, numbers: Tensor, n: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """Free digits and operators. All products at once: logarithms add up, zeros are counted.

        Modulo 5 the digits 1, 2, 4, 3 are the powers 0, 1, 2, 3 of 2.
        """
        place = positions(longest, numbers)
        word = torch.where(place % 2 == 0, pick(numbers, MODULUS), PLUS + pick(numbers, 3))
        digit = word[:, ::2]
        before = torch.cat([torch.full_like(digit[:, :1], PLUS), word[:, 1::2]], 1)
        factor, last = positions(digit.shape[1], numbers), n[:, None] // 2
        # the last factor of a product is followed by a sum or by the end
        begins = before != TIMES
        ends = torch.cat([begins[:, 1:], begins[:, :1]], 1) | (factor == last)
        first = torch.where(begins, factor, 0).cummax(1).values

        def over_the_product(x: Tensor) -> Tensor:
            """The sum of `x` from the first factor of a product to this one."""
            upto = x.cumsum(1)
            return upto - (upto - x).gather(1, first)

        below = digit - 1
        power = over_the_product(torch.where(digit > 0, below ^ (below >> 1), 0)) % 4
        product = 2**power * (over_the_product((digit == 0).long()) == 0)
        signed = torch.where(before.gather(1, first) == MINUS, -product, product)
        summed = torch.where(ends & (factor <= last), signed, 0)
        return word, summed.sum(1, keepdim=True) % MODULUS
