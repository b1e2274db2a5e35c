"""What guessing reaches: without it a score says little."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from prlstm.tasks.check import read_count

if TYPE_CHECKING:
    from prlstm.tasks.task import Task

# scores are means over these lengths, each of sub-batches of 64
SCORED = range(41, 501)
SUB_BATCH = 64
# lengths that are looked at where nobody knows the floors, and the tokens of all words there
MOST_LENGTHS, TOKENS = 25, 1 << 23


@dataclass(frozen=True)
class Floors:
    """The accuracy of predictors that do not read the word, as a mean over lengths 41 to 500.

    `uniform` guesses among all classes, `constant` always gives the best one, `position` knows
    the length and which answer is asked for.
    """

    uniform: float
    constant: float
    position: float

    @property
    def best(self) -> float:
        """The highest: what a score must beat to mean anything."""
        return max(self.uniform, self.constant, self.position)


def measure_floors(
    task: "Task", lengths: Iterable[int] = SCORED[::19], samples: int = 1024, seed: int = 0
) -> Floors:
    """The floors of a task, from samples at some lengths, odd and even ones.

    The position's best guess is made from one half of the samples and scored on the other, so
    that it learns nothing by heart.
    """
    if read_count("samples", samples) % SUB_BATCH:
        raise ValueError(f"samples={samples}: expected a multiple of {SUB_BATCH}")
    generator = torch.Generator().manual_seed(seed)
    constant, position = [], []
    for length in lengths:
        batch = task.sample(2 * samples, length, generator=generator)
        classes = one_hot(batch.target, task.output_size).double() * batch.mask[..., None]
        seen, unseen = classes[:samples], classes[samples:]
        total = batch.mask[samples:].sum(1)
        constant.append(_score(unseen.sum(1), total))
        guess = one_hot(seen.sum(0).argmax(-1), task.output_size)
        position.append(_score((unseen * guess).sum((1, 2))[:, None], total))
    always = float(torch.stack(constant).mean(0).amax())
    # who knows the position can always give the best constant
    knowing = max(always, float(torch.stack(position).mean()))
    return Floors(uniform=1 / task.output_size, constant=always, position=knowing)


def floors_at(task: "Task", lengths: Sequence[int]) -> Floors:
    """The floors over some lengths: known ones for those of the protocol, measured for others."""
    if list(lengths) == list(SCORED):
        return task.floors
    # an odd stride: odd and even lengths may differ
    some = sorted(lengths)[:: -(-len(lengths) // MOST_LENGTHS) | 1]
    # half of the words are for learning; short ones cost little, so there may be many
    samples = min(128, max(1, TOKENS // (2 * sum(some) * SUB_BATCH))) * SUB_BATCH
    return measure_floors(task, some, samples)


def _score(correct: Tensor, total: Tensor) -> Tensor:
    """The accuracies (k,) of k predictors, from their counts (B, k) and the totals (B,).

    Pooled in every sub-batch, averaged over them.
    """
    pooled = correct.reshape(-1, SUB_BATCH, correct.shape[1]).sum(1)
    counted = total.reshape(-1, SUB_BATCH, 1).sum(1)
    return torch.mean(pooled / counted, 0)
