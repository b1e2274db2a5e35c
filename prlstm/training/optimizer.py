"""Gradients clipped by seed, then Adam: in two launches where there are kernels for it."""

from collections.abc import Sequence

import torch
from torch import Tensor

from prlstm.kernels.choose import is_usable
from prlstm.kernels.steps import clip_and_update
from prlstm.models import Model

BETAS, EPSILON = (0.9, 0.999), 1e-8
MOMENTS = ("exp_avg", "exp_avg_sq")


class Optimizer:
    """Adam for the weights of all seeds of a model.

    On a GPU all that changes from step to step stands there, so that a captured step reads it.
    """

    def __init__(self, model: Model, device: torch.device) -> None:
        self.model, self.weights = model, list(model.parameters())
        self.on_gpu = device.type == "cuda"
        self.by_kernel = all(is_usable(w) and w.dtype == torch.float32 for w in self.weights)
        self.rate = torch.zeros((), device=device)
        self._rate: float | None = None
        self.adam = torch.optim.Adam(
            self.weights,
            lr=self.rate if self.on_gpu else 0.0,
            betas=BETAS,
            eps=EPSILON,
            fused=self.on_gpu,
            capturable=self.on_gpu,
        )
        for weight in self.weights:
            self.adam.state[weight] = {
                "step": torch.zeros((), device=device if self.on_gpu else "cpu"),
                **{moment: torch.zeros_like(weight) for moment in MOMENTS},
            }

    def moment(self, name: str, weight: Tensor) -> Tensor:
        """A running mean of the gradient of a weight, or of its square."""
        mean: Tensor = self.adam.state[weight][name]
        return mean

    def go_on_from(self, step: int) -> None:
        """So many updates were made before."""
        for weight in self.weights:
            self.adam.state[weight]["step"].fill_(step)

    def set_rate(self, rate: float) -> None:
        """The rate of the updates to come."""
        if rate == self._rate:
            return
        self._rate = rate
        if self.on_gpu:
            self.rate.fill_(rate)
        else:
            self.adam.param_groups[0]["lr"] = rate

    def update(self, step: Tensor, clip: float) -> Tensor:
        """Make one, after `step` others; gives the norm of the gradient of each seed (S,)."""
        gradients = [weight.grad for weight in self.weights]
        if not self.by_kernel or any(gradient is None for gradient in gradients):
            if self.by_kernel:
                for weight in self.weights:
                    self.adam.state[weight]["step"].copy_(step)
            norm = self.model.clip_gradients(clip)
            self.adam.step()
            return norm
        seeds = self.model.seeds

        def by_seed(tensors: Sequence[Tensor]) -> list[Tensor]:
            return [t.detach().view(seeds, -1) for t in tensors]

        first, second = (
            by_seed([self.moment(name, weight) for weight in self.weights]) for name in MOMENTS
        )
        return clip_and_update(
            by_seed(self.weights), by_seed([g for g in gradients if g is not None]), first, second,
            step, self.rate, clip=clip, betas=BETAS, epsilon=EPSILON,
        )  # fmt: skip
