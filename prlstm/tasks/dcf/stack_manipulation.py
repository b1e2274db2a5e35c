"""Stack Manipulation.

>>> from prlstm import tasks
>>> task = tasks.get("stack_manipulation")
>>> word = [1, 0, 2, 2, 4]
>>> task.show(word), task.label(word), task.show_answer(task.label(word))
('1 0 - - +1', [1, 2, 0, 0, 0, 0], '1$····')
>>> task.label([0, 2, 2])  # empty
[2, 0, 0, 0]
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from prlstm.tasks.floors import Floors
from prlstm.tasks.task import Size, Task
from prlstm.tasks.uniform import pick, positions

POP, PUSH = 2, 3
END = 2


class StackManipulation(Task):
    """What is on a stack after some actions, from top to bottom.

    A word is the content of a stack, bottom first, then actions: - pops, +0 and +1 push. Popping
    an empty stack does nothing. There is content of one token at least. The answer ends with $.
    """

    name, paper_name, level = "stack_manipulation", "Stack Manipulation", "DCF"
    symbols, answer_symbols = ("0", "1", "-", "+0", "+1"), "01$"
    terminator = END
    floors = Floors(uniform=1 / 3, constant=0.496, position=0.496)

    def output_length(self, n: Size) -> Size:
        """The whole stack and its terminator."""
        return n + 1

    def draws(self, n: int) -> int:
        """The first number is the size of the stack before the actions."""
        return n + 1

    def show(self, tokens: Tensor | Sequence[int]) -> str:
        """One word as a person reads it."""
        return " ".join(self._named(tokens, self.symbols))

    def label(self, word: Sequence[int]) -> list[int]:
        """Push and pop."""
        stack: list[int] = []
        acted = False
        for token in word:
            if token < POP and acted:
                raise ValueError("expected the content of the stack before all actions")
            acted = token >= POP
            if token == POP:
                del stack[-1:]
            else:
                stack.append(token - PUSH if acted else token)
        return [*reversed(stack), END, *[0] * (len(word) - len(stack))]

    def draw(self, numbers: Tensor, n: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """A size from 1 to n - 1, free bits, free actions.

        The height after t tokens is that of a walk which is lifted whenever it falls below zero.
        What lies at a height was pushed when the walk last rose to it.
        """
        size = 1 + pick(numbers[:, 0], (n - 1).clamp(min=1))
        free, place = numbers[:, 1:], positions(longest, numbers)
        content, inside = place < size[:, None], place < n[:, None]
        word = torch.where(content, pick(free, 2), POP + pick(free, 3))
        pushes = (word != POP) & inside
        walk = (2 * pushes - inside.long()).cumsum(1)
        height = walk - walk.cummin(1).values.clamp(max=0)
        # a push to height h at place t: the last one counts; those that do not push go to row 0
        target = torch.where(pushes, height, 0)
        pushed = torch.zeros(len(word), longest + 1, dtype=torch.long, device=word.device)
        pushed = pushed.scatter_reduce(1, target, place.expand_as(word), "amax")
        # from the top down
        top, answer = height[:, -1:], positions(longest + 1, word)
        token = word.gather(1, pushed.gather(1, (top - answer).clamp(min=0)))
        bit = torch.where(token < POP, token, token - PUSH)
        return word, torch.where(answer < top, bit, END * (answer == top))
