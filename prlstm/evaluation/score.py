"""Accuracy over lengths: many lengths in few batches, counted in sub-batches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from prlstm import tasks
from prlstm.models import Model, Stacked
from prlstm.stream import keys, uniform
from prlstm.tasks import Batch, Task
from prlstm.tasks.floors import SCORED, SUB_BATCH

# every run is scored on the same words
SEED, SPLIT = 1, "test"
SAMPLES = 512
# a run that reaches this has succeeded
SUCCESS = 0.9
# cells of all rows of a batch: what fits beside the weights
CELLS = {"cpu": 1 << 16, "cuda": 1 << 21}


@dataclass(frozen=True)
class LengthCounts:
    """Right answers and all answers, by length and sub-batch of 64: (lengths, sub-batches)."""

    lengths: tuple[int, ...]
    correct: Tensor
    total: Tensor

    @property
    def accuracy(self) -> Tensor:
        """At every length: the mean over sub-batches of what is pooled in each."""
        return torch.mean(self.correct / self.total, 1)

    @property
    def score(self) -> float:
        """The mean over lengths."""
        return float(self.accuracy.mean())


@dataclass(frozen=True)
class _Part:
    """Some words of one length: `rows` of them from `first` on."""

    length: int
    first: int
    rows: int


def evaluate(
    model: Model,
    lengths: Sequence[int] = SCORED,
    samples: int = SAMPLES,
    *,
    seed: int = SEED,
    split: str = SPLIT,
    cells: int | None = None,
    report: Callable[[float], None] = lambda share: None,
) -> list[LengthCounts]:
    """How often a model is right, for every seed of it: on `samples` words of each length.

    Lengths are those asked for. Batches hold about `cells` cells of the tapes of all seeds, and
    fewer where a GPU runs out of memory. Which words there are depends on the seed and the split
    alone. `report` is told which share of the work is done.
    """
    if samples < 1 or samples % SUB_BATCH:
        raise ValueError(f"samples={samples}: expected a multiple of {SUB_BATCH}")
    if not lengths or min(lengths) < 1:
        raise ValueError(f"lengths={list(lengths)!s:.80}: expected lengths >= 1")
    device, was_training = next(model.parameters()).device, model.training
    known = tuple(sorted(set(lengths)))
    budget = max(1, (cells or CELLS.get(device.type, CELLS["cpu"])) // model.seeds)
    work = [_Part(length, 0, samples) for length in known]
    whole = _cells(model.task, work)
    found: list[Tensor] = []
    model.eval()
    try:
        while work:
            batch = _filled(model.task, work, budget)
            try:
                found.append(_counted(model, batch, seed, split, device))
            except torch.OutOfMemoryError:
                if budget < batch[-1].length:
                    raise
                torch.cuda.empty_cache()
                budget //= 2
                continue
            work = _without(work, batch)
            report(1 - _cells(model.task, work) / whole)
    finally:
        model.train(was_training)
    # (seeds, correct and total, lengths, sub-batches)
    counts = torch.cat(found, -1).view(model.seeds, 2, len(known), -1, SUB_BATCH).sum(-1).cpu()
    return [LengthCounts(known, correct, total) for correct, total in counts]


def _tape(task: Task, length: int) -> int:
    n = task.input_length(length)
    return n + task.output_length(n)


def _cells(task: Task, work: list[_Part]) -> int:
    return sum(_tape(task, part.length) * part.rows for part in work)


def _filled(task: Task, work: list[_Part], budget: int) -> list[_Part]:
    """The next words: as many as their tapes have room together, one at least."""
    batch: list[_Part] = []
    rows = 0
    for part in work:
        # all rows are as wide as the longest one
        room = max(0 if batch else 1, budget // _tape(task, part.length) - rows)
        if room < part.rows:
            if room:
                batch.append(_Part(part.length, part.first, room))
            break
        batch.append(part)
        rows += part.rows
    return batch


def _without(work: list[_Part], done: list[_Part]) -> list[_Part]:
    """What is left to do."""
    last, rest = done[-1], work[len(done) :]
    left = work[len(done) - 1].rows - last.rows
    return [_Part(last.length, last.first + last.rows, left), *rest] if left else rest


@torch.inference_mode()
def _counted(
    model: Model, batch: list[_Part], seed: int, split: str, device: torch.device
) -> Tensor:
    """Right and all answers of every row: (seeds, 2, rows)."""
    # known to the host, so that models compute no more than these lengths need
    asked = torch.cat([torch.full((part.rows,), part.length) for part in batch])
    words = _words(model.task, batch, asked, seed, split, device)
    lengths = model.task.input_length(asked)
    return torch.stack([torch.stack(count) for count in _counts(model, words, lengths)])


def _words(
    task: Task, batch: list[_Part], asked: Tensor, seed: int, split: str, device: torch.device
) -> Batch:
    """The words of a batch, one for each length that is `asked` for."""
    key = keys([seed], split).to(device)
    longest = batch[-1].length
    wide = task.draws(task.input_length(longest))
    numbers = []
    for part in batch:
        draws = task.draws(task.input_length(part.length))
        drawn = uniform(key, part.length, part.rows * draws, part.first * draws)
        numbers.append(pad(drawn.view(part.rows, draws), (0, wide - draws)))
    return task.sample_from(torch.cat(numbers), asked, longest)


def _counts(model: Model, batch: Batch, lengths: Tensor) -> list[tasks.Counts]:
    """For every seed the counts of all rows."""
    if not isinstance(model, Stacked):
        return [tasks.count(model(batch.input, lengths), batch.target, batch.mask)]
    words = batch.input.expand(model.seeds, *batch.input.shape)
    logits = model(words, lengths.expand(model.seeds, len(batch)))
    return [tasks.count(one, batch.target, batch.mask) for one in logits]
