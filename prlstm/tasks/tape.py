"""The tape: what a model sees of a word, and where it answers.

    [ the word | computation cells | one empty cell for each answer ]

A model reads the tape from left to right and answers in the empty cells. They are all alike:
nothing but the place tells which answer is asked for.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from prlstm.tasks.check import Lengths, batch_shape, read_count, read_lengths
from prlstm.tasks.task import Task
from prlstm.tasks.uniform import positions


@dataclass(frozen=True)
class Tape:
    """Tapes of a batch, each contiguous, with empty cells behind the shorter ones.

    `tokens` (B, T) are ids below `size`; `answers` (B, O) are the cells of the answers, those of
    a longer row where a row has fewer; `input_lengths` (B,) and `lengths` (B,) count the tokens
    of the words and the cells of the tapes.
    """

    tokens: Tensor
    answers: Tensor
    input_lengths: Tensor
    lengths: Tensor
    size: int

    def one_hot(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The tape as vectors: (B, T, size)."""
        return (self.tokens[..., None] == positions(self.size, self.tokens)).to(dtype)

    def read(self, states: Tensor) -> Tensor:
        """Of a model's states (B, T, H) those at the cells of the answers: (B, O, H)."""
        return states.gather(1, self.answers[..., None].expand(-1, -1, states.shape[-1]))


def tape_size(task: Task, computation: int = 0) -> int:
    """How many different cells a tape has: the tokens, the empty cell, the computation cell."""
    return task.input_size + (2 if computation else 1)


def tape(
    task: Task,
    tokens: Tensor,
    lengths: Lengths | None = None,
    *,
    computation: int = 0,
) -> Tape:
    """The tapes of words (B, L), with `computation` cells for every token of a word.

    `lengths` (B,) are those of the words, if they are mixed.

    >>> from prlstm import tasks
    >>> binary = tasks.get("reverse_string")
    >>> words = torch.tensor([[0, 1, 1], [1, 0, 0]])
    >>> tape(binary, words, lengths=[3, 1]).tokens
    tensor([[0, 1, 1, 2, 2, 2],
            [1, 2, 2, 2, 2, 2]])
    >>> tape(binary, words, computation=1).tokens
    tensor([[0, 1, 1, 2, 2, 2, 3, 3, 3],
            [1, 0, 0, 2, 2, 2, 3, 3, 3]])
    """
    read_count("computation", computation, least=0)
    rows, longest = batch_shape(tokens)
    if lengths is None:
        n = torch.full((rows,), longest, device=tokens.device)
    else:
        n = read_lengths(lengths, rows, longest).to(tokens.device)
    size = tape_size(task, computation)
    begin = (1 + computation) * n
    most = task.output_length(longest)
    cell = positions((1 + computation) * longest + most, tokens)
    word = tokens.gather(1, cell.clamp(max=longest - 1).expand(rows, -1))
    # the empty cell is the last kind, the computation cell comes before it
    rest = torch.where(cell < begin[:, None], task.input_size, size - 1)
    return Tape(
        tokens=torch.where(cell < n[:, None], word, rest),
        answers=begin[:, None] + positions(most, tokens),
        input_lengths=n,
        lengths=begin + task.output_length(n),
        size=size,
    )
