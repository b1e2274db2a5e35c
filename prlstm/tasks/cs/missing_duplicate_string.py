"""Missing Duplicate.

>>> from prlstm import tasks
>>> task = tasks.get("missing_duplicate_string")
>>> task.show([0, 0, 1, 0, 2, 1]), task.label([0, 0, 1, 0, 2, 1])
('0010?1', [0])
>>> task.show([2, 1, 3]), task.label([2, 1, 3])
('?1.', [1])
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from prlstm.tasks.floors import Floors
from prlstm.tasks.task import Task
from prlstm.tasks.uniform import pick, positions

HOLE, FILLER = 2, 3


class MissingDuplicateString(Task):
    """The bit that is missing in a word of bits that is written twice.

    ? stands for the missing bit; a dot fills up an odd length, at the end. The word of length 1 is
    always 1, and so is its answer.
    """

    name, paper_name, level = "missing_duplicate_string", "Missing Duplicate", "CS"
    symbols, answer_symbols = "01?.", "01"
    floors = Floors(uniform=0.5, constant=0.5, position=0.5)

    def draws(self, n: int) -> int:
        """The first number is the place of the hole."""
        return n + 1

    def label(self, word: Sequence[int]) -> list[int]:
        """Look into the other half, after a check that the halves are equal."""
        if list(word) == [1]:
            return [1]
        half = len(word) // 2
        pairs, rest = list(zip(word[:half], word[half:], strict=False)), word[2 * half :]
        missing = [max(pair) == HOLE for pair in pairs]
        fits = all(a == b < HOLE or (HOLE in (a, b) and min(a, b) < HOLE) for a, b in pairs)
        if missing.count(True) != 1 or not fits or any(token != FILLER for token in rest):
            raise ValueError(
                f"expected some bits twice with one {self.symbols[HOLE]!r} among them, "
                f"and a {self.symbols[FILLER]!r} at the end of an odd length"
            )
        return [min(pairs[missing.index(True)])]

    def draw(self, numbers: Tensor, n: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """Free bits for one half, written twice, and a free place for the hole."""
        half, place = (n // 2)[:, None], positions(longest, numbers)
        bits = pick(numbers[:, 1:], 2)
        word = torch.where(place < 2 * half, bits.gather(1, place % half.clamp(min=1)), FILLER)
        hole = pick(numbers[:, :1], (2 * half).clamp(min=1))
        shortest = n[:, None] == 1
        answer = torch.where(shortest, 1, word.gather(1, hole))
        return torch.where(shortest, 1, torch.where(place == hole, HOLE, word)), answer
