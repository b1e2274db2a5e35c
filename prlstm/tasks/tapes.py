"""The tape: what a model sees of a word, and where it answers.

    [ the word | computation cells | one empty cell for each answer ]

A model reads the tape from left to right and answers in the empty cells. They are all alike:
nothing but the place tells which answer is asked for. A model that is fed its answers back has

    [ the word | computation cells | one empty cell | the answers ]

and each answer is asked for in the cell before it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from prlstm.tasks.check import Lengths, batch_shape, read_count, read_lengths
from prlstm.tasks.task import Task
from prlstm.tasks.uniform import positions


@dataclass(frozen=True)
class Tape:
    """Tapes of a batch, each contiguous, with empty cells behind the shorter ones.

    `tokens` (B, T) are ids below `size`; `answers` (B, O) are the cells in which the answers are
    asked for, going on behind the end of a row that has fewer. Of every row, `input_lengths` (B,)
    counts the tokens of the word, `answer_counts` (B,) the answers, `lengths` (B,) the cells;
    `computation` of these for each token are left to computation.
    """

    tokens: Tensor
    answers: Tensor
    input_lengths: Tensor
    answer_counts: Tensor
    lengths: Tensor
    size: int
    computation: int

    def one_hot(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The tape as vectors: (B, T, size)."""
        return one_hot(self.tokens, self.size, dtype)

    def read(self, states: Tensor) -> Tensor:
        """Of a model's states (B, T, H) those at the cells of the answers: (B, O, H)."""
        return states.gather(1, self.answers[..., None].expand(-1, -1, states.shape[-1]))


def tape_size(task: Task, computation: int = 0, *, autoregressive: bool = False) -> int:
    """How many different cells a tape has: the tokens, the empty cell, the computation cell.

    Where answers are fed back there are as many as there are classes, if these are more.
    """
    read_count("computation", computation, least=0)
    tokens = max(task.input_size, task.output_size) if autoregressive else task.input_size
    return tokens + (2 if computation else 1)


def tape(
    task: Task,
    tokens: Tensor,
    lengths: Lengths | None = None,
    *,
    computation: int = 0,
    earlier: Tensor | None = None,
) -> Tape:
    """The tapes of words (B, L), with `computation` cells for every token of a word.

    `lengths` (B,) are those of the words, if they are mixed. `earlier` (B, O) are answers that
    are fed back.

    >>> from prlstm import tasks
    >>> binary = tasks.get("reverse_string")
    >>> words = torch.tensor([[0, 1, 1], [1, 0, 0]])
    >>> tape(binary, words, lengths=[3, 1]).tokens
    tensor([[0, 1, 1, 2, 2, 2],
            [1, 2, 2, 2, 2, 2]])
    >>> tape(binary, words, computation=1).tokens
    tensor([[0, 1, 1, 2, 2, 2, 3, 3, 3],
            [1, 0, 0, 2, 2, 2, 3, 3, 3]])
    >>> tape(binary, words, earlier=words.flip(1)).tokens
    tensor([[0, 1, 1, 2, 1, 1, 0],
            [1, 0, 0, 2, 0, 0, 1]])
    """
    read_count("computation", computation, least=0)
    rows, longest = batch_shape(tokens)
    if lengths is None and not computation and earlier is None:
        return _tape_of_equals(task, tokens)
    if lengths is None:
        n = torch.full((rows,), longest, device=tokens.device)
    else:
        n = read_lengths(lengths, rows, longest).to(tokens.device)
    if earlier is not None and batch_shape(earlier) != (rows, task.output_length(longest)):
        raise ValueError(
            f"earlier of shape {tuple(earlier.shape)}: "
            f"expected {(rows, task.output_length(longest))}, all answers"
        )
    most, counts = task.output_length(longest), task.output_length(n)
    begin = ((1 + computation) * n)[:, None]
    # behind the word: computation cells and one empty cell for each answer, or one for all
    width = (1 + computation) * longest + most + (earlier is not None)
    cell = positions(width, tokens)
    empty = task.input_size + (computation > 0)
    cells = torch.where(cell < begin, task.input_size, empty)
    cells = torch.where(cell < n[:, None], _at(tokens, cell.expand(rows, -1)), cells)
    if earlier is not None:
        fed = (cell > begin) & (cell <= begin + counts[:, None])
        cells = torch.where(fed, _at(earlier, cell - begin - 1), cells)
    return Tape(
        tokens=cells,
        answers=begin + positions(most, tokens),
        input_lengths=n,
        answer_counts=counts,
        lengths=begin[:, 0] + counts + (earlier is not None),
        size=tape_size(task, computation, autoregressive=earlier is not None),
        computation=computation,
    )


def one_hot(cells: Tensor, size: int, dtype: torch.dtype) -> Tensor:
    """Cells (B, T) as vectors: (B, T, size)."""
    return (cells[..., None] == positions(size, cells)).to(dtype)


def cells_of_equals(task: Task, tokens: Tensor) -> Tensor:
    """The cells (B, T) of words of one length, and of one empty cell for each answer: one copy."""
    return pad(tokens, (0, task.output_length(tokens.shape[1])), value=task.input_size)


def _tape_of_equals(task: Task, tokens: Tensor) -> Tape:
    """Words of one length, and nothing but empty cells behind them."""
    rows, length = tokens.shape
    most = task.output_length(length)
    counts = [torch.full((rows,), n, device=tokens.device) for n in (length, most, length + most)]
    return Tape(
        tokens=cells_of_equals(task, tokens),
        answers=(length + positions(most, tokens)).expand(rows, most),
        input_lengths=counts[0],
        answer_counts=counts[1],
        lengths=counts[2],
        size=tape_size(task),
        computation=0,
    )


def _at(ids: Tensor, index: Tensor) -> Tensor:
    """For every row the ids (B, L) at some places (B, n); what lies outside means nothing."""
    return ids.gather(1, index.clamp(0, ids.shape[1] - 1))
