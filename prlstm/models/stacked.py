"""Many seeds of one model in one program: weights with a leading axis of seeds."""

import copy
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from prlstm.models.model import Model
from prlstm.models.reading import Reading
from prlstm.tasks.check import Lengths


class Stacked(Model):
    """Models of one kind as one, copies of their weights with a leading axis of seeds: (S, ...).

    `stacked(tokens, lengths, target)` takes (S, B, L), (S, B) and (S, B, O) and gives logits
    (S, B, O, classes): what each model gives for its own rows. The gradient of the sum of the
    seeds' losses holds that of every seed.
    """

    def __init__(self, models: Iterable[Model]) -> None:
        alone = list(models) if isinstance(models, Iterable) else [models]
        if not alone or not all(isinstance(model, Model) for model in alone):
            raise TypeError(f"models={alone!r:.80}: expected one Model or more")
        first = alone[0]
        for seed, model in enumerate(alone):
            if (model.name, model.task, model.options) != (first.name, first.task, first.options):
                raise ValueError(
                    f"models[{seed}] is {model.name} for {model.task.name} with {model.options}: "
                    "expected it to be as models[0]"
                )
        network = StackedNetwork([model.network for model in alone])
        super().__init__(first.name, first.task, first.options, network)
        self.network: StackedNetwork = network
        self.seeds = len(alone)

    def __len__(self) -> int:
        return self.seeds

    def forward(
        self, tokens: Tensor, lengths: Lengths | None = None, target: Tensor | None = None
    ) -> Tensor:
        """Shapes: as above."""
        self._check("tokens", tokens, "(S, B, L)", 3)
        if lengths is not None:
            lengths = torch.as_tensor(lengths)
            self._check("lengths", lengths, "(S, B)", 2)
            lengths = lengths.flatten()
        if target is not None:
            self._check("target", target, "(S, B, O)", 3)
            target = target.flatten(0, 1)
        logits = super().forward(tokens.flatten(0, 1), lengths, target)
        return logits.view(self.seeds, -1, *logits.shape[1:])

    def unstacked(self) -> list[Model]:
        """The models again: copies, each with its own weights."""
        return [
            Model(self.name, self.task, self.options, network).train(self.training)
            for network in self.network.unstacked()
        ]

    def extra_repr(self) -> str:
        """What `repr` says inside the brackets."""
        return f"{self.seeds} seeds, {super().extra_repr()}"

    def _check(self, name: str, tensor: Tensor, layout: str, rank: int) -> None:
        if tensor.dim() != rank or tensor.shape[0] != self.seeds:
            raise ValueError(
                f"{name} of shape {tuple(tensor.shape)}: expected {layout} with S={self.seeds}"
            )


class StackedNetwork(nn.Module):
    """Networks of one shape as one, over rows (S * B, ...) in the order of the seeds."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.seeds, self.way = len(networks), copy.deepcopy(networks[0])
        weights = [dict(network.named_parameters()) for network in networks]
        for name in weights[0]:
            stacked = torch.stack([one[name].detach() for one in weights])
            _put(self.way, name, stacked)
        _set_fused(self.way, False)

    def forward(self, x: Tensor, reading: Reading, target: Tensor | None = None) -> Tensor:
        """Shapes: `x` (S * B, T, D), logits (S * B, O, C)."""
        by_row = {
            field.name: self._by_seed(value)
            for field in fields(reading)
            if isinstance(value := getattr(reading, field.name), Tensor)
        }
        given = [] if target is None else [self._by_seed(target)]

        def one(
            weights: dict[str, Tensor], x: Tensor, rows: dict[str, Any], given: list[Tensor]
        ) -> Tensor:
            arguments = (x, replace(reading, **rows), *given)
            logits: Tensor = functional_call(self.way, weights, arguments)
            return logits

        weights: dict[str, Tensor] = dict(self.way.named_parameters())
        every = vmap(one, randomness="different")(weights, self._by_seed(x), by_row, given)
        return every.flatten(0, 1)

    def unstacked(self) -> list[nn.Module]:
        """The networks again."""
        alone = []
        for seed in range(self.seeds):
            network = copy.deepcopy(self.way)
            for name, weight in self.way.named_parameters():
                _put(network, name, weight[seed].detach().clone())
            _set_fused(network, True)
            alone.append(network)
        return alone

    def _by_seed(self, rows: Tensor) -> Tensor:
        return rows.view(self.seeds, -1, *rows.shape[1:])


def _put(network: nn.Module, name: str, weight: Tensor) -> None:
    path, _, last = name.rpartition(".")
    setattr(network.get_submodule(path), last, nn.Parameter(weight))


def _set_fused(network: nn.Module, fused: bool) -> None:
    """Libraries that run one network fast cannot run many at once."""
    for module in network.modules():
        if hasattr(module, "fused"):
            module.fused = fused  # type: ignore[assignment]
