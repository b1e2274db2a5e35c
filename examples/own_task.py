"""A task of your own: a definition and a sampler, and everything else follows.

The words are numbers in bits, highest bit first; the answer is the remainder modulo 3.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

import prlstm
from prlstm import tasks


class Remainder(tasks.Task):
    """The remainder of a number in bits, highest bit first, modulo 3."""

    name, paper_name, level = "remainder", "Remainder", "R"
    symbols, answer_symbols = "01", "012"

    def label(self, word: Sequence[int]) -> list[int]:
        """By definition, one word at a time, in plain Python."""
        return [int("".join(map(str, word)), 2) % 3]

    def draw(self, numbers: Tensor, n: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """Many words at once, from uniform numbers (B, longest); row b has n[b] tokens.

        Modulo 3 the powers of 2 are 1, 2, 1, 2, ...; no loop over rows, no value read back.
        """
        word = (numbers < 0.5).long()
        place = n[:, None] - 1 - torch.arange(longest, device=numbers.device)
        value = torch.where(place >= 0, word * (1 + place % 2), 0)
        return word, value.sum(1, keepdim=True) % 3


def main() -> None:
    """Register it, sample it, hold its two halves against each other."""
    task = tasks.register(Remainder())
    assert prlstm.tasks.get("remainder") is task
    batch = task.sample(lengths=[5, 40, 500], generator=torch.Generator().manual_seed(0))
    assert batch.target.equal(task.target(batch.input, batch.lengths))
    word = batch.input[0, : batch.lengths[0]]
    print(f"{task}\n{task.show(word)} has the remainder {task.show_answer(batch.target[0])}")
    print(f"its tape: {tasks.tape(task, word[None]).tokens[0].tolist()}")
    # measured from samples, since the task does not say
    print(f"guessing scores {100 * task.floors.best:.0f} %")


if __name__ == "__main__":
    main()
