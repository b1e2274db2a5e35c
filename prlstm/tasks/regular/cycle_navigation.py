"""Cycle Navigation.

>>> from prlstm import tasks
>>> task = tasks.get("cycle_navigation")
>>> task.label([0])  # one step back
[4]
>>> task.show([0, 1, 0, 2]), task.label([0, 1, 0, 2])
('-.-+', [4])
"""

from collections.abc import Sequence

from torch import Tensor

from prlstm.tasks.floors import Floors
from prlstm.tasks.task import Task
from prlstm.tasks.uniform import pick, positions

PLACES = 5


class CycleNavigation(Task):
    """Where a walk on a circle of five places ends that begins at place 0.

    A step back is written -, no step is a dot, a step forward +. The class is the place.
    """

    name, paper_name, level = "cycle_navigation", "Cycle Navigation", "R"
    symbols, answer_symbols = "-.+", "01234"
    floors = Floors(uniform=0.2, constant=0.2, position=0.2)

    def label(self, word: Sequence[int]) -> list[int]:
        """Walk."""
        place = 0
        for token in word:
            place = (place + token - 1) % PLACES
        return [place]

    def draw(self, numbers: Tensor, n: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """Free steps, and their sum."""
        word = pick(numbers, 3)
        steps = (word - 1) * (positions(longest, numbers) < n[:, None])
        return word, steps.sum(1, keepdim=True) % PLACES
