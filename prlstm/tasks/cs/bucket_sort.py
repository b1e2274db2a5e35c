"""Bucket Sort.

>>> from prlstm import tasks
>>> task = tasks.get("bucket_sort")
>>> task.label([0, 3, 2, 1, 2])
[0, 1, 2, 2, 3]
>>> task.floors.constant, task.floors.position
(0.2, 0.901)
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from prlstm.tasks.floors import Floors
from prlstm.tasks.task import Size, Task
from prlstm.tasks.uniform import pick, positions

BUCKETS = 5


class BucketSort(Task):
    """The tokens in order.

    Much of it can be guessed: in a long word the answer at a place is nearly always the same.
    """

    name, paper_name, level = "bucket_sort", "Bucket Sort", "CS"
    symbols, answer_symbols = "01234", "01234"
    floors = Floors(uniform=0.2, constant=0.2, position=0.901)

    def output_length(self, n: Size) -> Size:
        """As long as the word."""
        return n

    def label(self, word: Sequence[int]) -> list[int]:
        """Sort."""
        return sorted(word)

    def draw(self, numbers: Tensor, n: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """Free tokens. An answer is how many buckets are full before its place."""
        word, place = pick(numbers, BUCKETS), positions(longest, numbers)
        inside, answers = place < n[:, None], torch.zeros_like(word)
        for bucket in range(BUCKETS - 1):
            answers += place >= ((word <= bucket) & inside).sum(1, keepdim=True)
        return word, answers
