"""Many seeds of one run, trained as one program: sample, answer, update."""

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import vmap

from prlstm import tasks
from prlstm.kernels.choose import is_usable
from prlstm.kernels.steps import MOST_CLASSES, score_answers
from prlstm.models import Model, Stacked
from prlstm.stream import derived, keys, uniform
from prlstm.training.capture import CapturedSteps
from prlstm.training.config import RunConfig
from prlstm.training.optimizer import Optimizer
from prlstm.training.precision import computing, weight_type

SPLIT = "train"


@dataclass(frozen=True)
class Metrics:
    """What some steps gave, for each step and seed: (steps, S). On the host."""

    first_step: int
    loss: Tensor
    correct: Tensor
    total: Tensor
    norm: Tensor


class Trainer:
    """Runs that differ in their seeds alone, each with its own weights and optimiser state.

    A seed sees the same batches, and takes the same steps, alone and beside others. On a device
    nothing waits for the host: metrics stay there until `read_metrics`. On CUDA steps are captured,
    unless `capture` says otherwise; where that is not possible, `say` is told in a line.
    """

    def __init__(
        self,
        runs: Sequence[RunConfig],
        device: torch.device | str = "cpu",
        *,
        capture: bool = True,
        say: Callable[[str], None] = warnings.warn,
    ) -> None:
        first, self.device = runs[0], torch.device(device)
        for run in runs:
            if run.with_seed(first.seed) != first:
                raise ValueError(f"{run.name}: expected runs that differ in their seeds alone")
        self.config, self.runs = first, tuple(runs)
        self.task, self.curriculum = tasks.get(first.task), first.curriculum
        alone = [run.build() for run in runs]
        model = alone[0] if len(runs) == 1 else Stacked(alone)
        self.model: Model = model.to(device, weight_type(first.precision)).train()
        self.average: Model | None = None
        if first.average:
            self.average = copy.deepcopy(self.model).requires_grad_(False)
        self.optimizer = Optimizer(self.model, self.device)
        seeds = [run.seed for run in runs]
        self._keys, self._noise = (keys(seeds, split).to(device) for split in (SPLIT, "dropout"))
        self._drops = getattr(self.model.options, "dropout", 0.0) > 0
        # the step, on the host and where it is computed
        self._step, self._now = 0, torch.zeros((), dtype=torch.long, device=device)
        self._unread: list[Tensor] = []
        # it is handed the step each time: one that it kept would keep this trainer alive
        is_captured = capture and self.device.type == "cuda"
        self._captured = CapturedSteps(self.device, say) if is_captured else None

    @property
    def step(self) -> int:
        """How many updates were made."""
        return self._step

    def go_on_from(self, step: int) -> None:
        """Weights and moments are those after so many updates."""
        self._step = step
        self._now.fill_(step)
        self.optimizer.go_on_from(step)

    def update(self, steps: int = 1) -> None:
        """Make some updates."""
        for _ in range(steps):
            self.optimizer.set_rate(self.config.schedule.at(self._step))
            length = self.curriculum.length(self._step)
            if self._captured is None:
                made = self._update_once(length)
            else:
                made = self._captured(self._update_once, length)
            self._unread.append(made)
            self._step += 1

    def read_metrics(self) -> Metrics:
        """What the steps since the last reading gave; waits for the device."""
        steps = torch.stack(self._unread).cpu()
        first = self._step - len(self._unread)
        self._unread = []
        return Metrics(first, *steps.unbind(1))

    def models(self) -> list[Model]:
        """Every seed's model, with a copy of its weights as they are now."""
        stacked = self.model if isinstance(self.model, Stacked) else Stacked([self.model])
        return stacked.unstacked()

    def batch(self, step: int) -> tasks.Batch:
        """The words of a step, of all seeds one after the other."""
        return self._drawn(self.curriculum.length(step), step)

    def _drawn(self, length: int, step: int | Tensor) -> tasks.Batch:
        draws = self.task.draws(self.task.input_length(length))
        numbers = uniform(self._keys, step, self.config.batch_size * draws)
        return self.task.sample_from(numbers.view(-1, draws), length)

    def _update_once(self, length: int) -> Tensor:
        """Loss, right answers, all answers and the norm of the gradient: (4, S)."""
        seeds = len(self.runs)
        batch = self._drawn(length, self._now)
        shape = (seeds, self.config.batch_size, -1)
        words, target, mask = (part.view(shape) for part in (batch.input, batch.target, batch.mask))
        noise = derived(self._noise, self._now) if self._drops else None
        self.model.zero_grad()
        with computing(self.config.precision, self.device):
            if seeds == 1:
                logits = self.model(words[0], target=target[0], noise=noise)[None]
            else:
                logits = self.model(words, target=target, noise=noise)
            scores = _differentiate(logits, target, mask)
        norm = self.optimizer.update(self._now, self.config.clip)
        self._update_average()
        self._now += 1
        return torch.cat([scores, norm[None].double()])

    @torch.no_grad()
    def _update_average(self) -> None:
        if self.average is None:
            return
        # the first steps are far from where the weights will be: they are forgotten sooner
        step = self._now.to(weight_type(self.config.precision))
        forgotten = 1 - ((1 + step) / (10 + step)).clamp(max=self.config.average)
        for average, weight in zip(self.average.parameters(), self.model.parameters(), strict=True):
            average.lerp_(weight, forgotten)


def _differentiate(logits: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """Go back from the losses; gives these, and right answers and all: (3, S), float64."""
    is_small = logits.shape[-1] <= MOST_CLASSES
    if is_small and is_usable(logits) and logits.dtype != torch.float64:
        scores, gradient = score_answers(logits, target, mask)
        torch.autograd.backward(logits, gradient)
        return scores
    losses = vmap(tasks.loss)(logits, target)
    torch.autograd.backward(losses.sum())
    counts = vmap(tasks.count)(logits.detach(), target, mask)
    return torch.stack([losses.detach().double(), *(count.sum(1).double() for count in counts)])
