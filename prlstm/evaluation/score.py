"""Accuracy over lengths: many lengths in few batches, counted in sub-batches."""

from collections.abc import Iterator, Sequence
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


def evaluate(
    model: Model,
    lengths: Sequence[int] = SCORED,
    samples: int = SAMPLES,
    *,
    seed: int = SEED,
    split: str = SPLIT,
    cells: int | None = None,
) -> list[LengthCounts]:
    """How often a model is right, for every seed of it: on `samples` words of each length.

    Lengths are those asked for. Batches hold about `cells` cells of the tapes of all seeds. Which
    words there are depends on the seed and the split alone.
    """
    if samples < 1 or samples % SUB_BATCH:
        raise ValueError(f"samples={samples}: expected a multiple of {SUB_BATCH}")
    if not lengths or min(lengths) < 1:
        raise ValueError(f"lengths={list(lengths)!s:.80}: expected lengths >= 1")
    device, was_training = next(model.parameters()).device, model.training
    budget = cells or CELLS.get(device.type, CELLS["cpu"])
    found: list[list[Tensor]] = []
    model.eval()
    with torch.inference_mode():
        for group in _grouped(model.task, sorted(set(lengths)), samples, budget // model.seeds):
            # known to the host, so that models compute no more than these lengths need
            asked = torch.tensor(group).repeat_interleave(samples)
            batch = _words(model.task, group, asked, seed, split, device)
            lengths_of_rows = model.task.input_length(asked)
            counts = [torch.stack(count) for count in _counts(model, batch, lengths_of_rows)]
            found.append([c.view(2, len(group), -1, SUB_BATCH).sum(-1).cpu() for c in counts])
    model.train(was_training)
    known = tuple(sorted(set(lengths)))
    by_seed = (torch.cat(parts, 1) for parts in zip(*found, strict=True))
    return [LengthCounts(known, correct, total) for correct, total in by_seed]


def _grouped(task: Task, lengths: list[int], samples: int, cells: int) -> Iterator[list[int]]:
    """Neighbouring lengths, as many as their tapes have room together; one at least."""
    group: list[int] = []
    for length in lengths:
        n = task.input_length(length)
        tape = n + task.output_length(n)
        if group and (len(group) + 1) * samples * tape > cells:
            yield group
            group = []
        group.append(length)
    yield group


def _words(
    task: Task, lengths: list[int], asked: Tensor, seed: int, split: str, device: torch.device
) -> Batch:
    """The words of some lengths, one for each that is `asked` for."""
    samples = len(asked) // len(lengths)
    key = keys([seed], split).to(device)
    wide = task.draws(task.input_length(lengths[-1]))
    numbers = []
    for length in lengths:
        draws = task.draws(task.input_length(length))
        drawn = uniform(key, length, samples * draws).view(samples, draws)
        numbers.append(pad(drawn, (0, wide - draws)))
    return task.sample_from(torch.cat(numbers), asked, lengths[-1])


def _counts(model: Model, batch: Batch, lengths: Tensor) -> list[tasks.Counts]:
    """For every seed the counts of all rows."""
    if not isinstance(model, Stacked):
        return [tasks.count(model(batch.input, lengths), batch.target, batch.mask)]
    words = batch.input.expand(model.seeds, *batch.input.shape)
    logits = model(words, lengths.expand(model.seeds, len(batch)))
    return [tasks.count(one, batch.target, batch.mask) for one in logits]
