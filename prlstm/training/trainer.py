"""Many seeds of one run, trained as one program: sample, answer, update."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import vmap

from prlstm import tasks
from prlstm.models import Model, Stacked
from prlstm.stream import derived, keys, uniform
from prlstm.training.config import RunConfig
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
    nothing waits for the host: metrics stay there until `read_metrics`.
    """

    def __init__(self, runs: Sequence[RunConfig], device: torch.device | str = "cpu") -> None:
        first, self.device = runs[0], torch.device(device)
        for run in runs:
            if run.with_seed(first.seed) != first:
                raise ValueError(f"{run.name}: expected runs that differ in their seeds alone")
        self.config, self.runs, self.step = first, tuple(runs), 0
        self.task = tasks.get(first.task)
        alone = [run.build() for run in runs]
        model = alone[0] if len(runs) == 1 else Stacked(alone)
        self.model: Model = model.to(device, weight_type(first.precision)).train()
        self.average: Model | None = None
        if first.average:
            self.average = copy.deepcopy(self.model).requires_grad_(False)
        # one kernel for all weights, where the device has it
        fused = self.device.type == "cuda"
        self.optimizer = torch.optim.Adam(self.model.parameters(), first.schedule.rate, fused=fused)
        seeds = [run.seed for run in runs]
        self._keys, self._noise = (keys(seeds, split).to(device) for split in (SPLIT, "dropout"))
        self._unread: list[tuple[Tensor, ...]] = []

    def update(self, steps: int = 1) -> None:
        """Make some updates."""
        for _ in range(steps):
            self._unread.append(self._update_once())
            self.step += 1

    def read_metrics(self) -> Metrics:
        """What the steps since the last reading gave; waits for the device."""
        steps = [torch.stack(kind).cpu() for kind in zip(*self._unread, strict=True)]
        first = self.step - len(self._unread)
        self._unread = []
        return Metrics(first, *steps)

    def models(self) -> list[Model]:
        """Every seed's model, with a copy of its weights as they are now."""
        stacked = self.model if isinstance(self.model, Stacked) else Stacked([self.model])
        return stacked.unstacked()

    @property
    def _seeds(self) -> int:
        return len(self.runs)

    def batch(self, step: int) -> tasks.Batch:
        """The words of a step, of all seeds one after the other."""
        config, task = self.config, self.task
        length = config.curriculum.length(step)
        draws = task.draws(task.input_length(length))
        numbers = uniform(self._keys, step, config.batch_size * draws)
        return task.sample_from(numbers.view(-1, draws), length)

    def _update_once(self) -> tuple[Tensor, ...]:
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.schedule.at(self.step)
        batch = self.batch(self.step)
        shape = (self._seeds, self.config.batch_size, -1)
        words, target, mask = (part.view(shape) for part in (batch.input, batch.target, batch.mask))
        noise = derived(self._noise, self.step)
        self.optimizer.zero_grad()
        with computing(self.config.precision, self.device):
            if self._seeds == 1:
                logits = self.model(words[0], target=target[0], noise=noise)[None]
            else:
                logits = self.model(words, target=target, noise=noise)
            losses = vmap(tasks.loss)(logits, target)
            torch.autograd.backward(losses.sum())
        norm = self.model.clip_gradients(self.config.clip)
        self.optimizer.step()
        self._update_average()
        with torch.no_grad():
            counts = vmap(tasks.count)(logits, target, mask)
        return losses.detach(), counts.correct.sum(1), counts.total.sum(1), norm

    @torch.no_grad()
    def _update_average(self) -> None:
        if self.average is None:
            return
        # the first steps are far from where the weights will be: they are forgotten sooner
        kept = min(self.config.average, (1 + self.step) / (10 + self.step))
        for average, weight in zip(self.average.parameters(), self.model.parameters(), strict=True):
            average.lerp_(weight, 1 - kept)
