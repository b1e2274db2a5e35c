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
        if not alone or any(not isinstance(m, Model) or isinstance(m, Stacked) for m in alone):
            raise TypeError(f"models={alone!r:.80}: expected one Model or more")
        first = alone[0]
        for seed, model in enumerate(alone):
            if _described(model) != _described(first):
                raise ValueError(
                    f"models[{seed}] is {_described(model)}: expected {_described(first)}, "
                    "as models[0] is"
                )
        network = StackedNetwork([model.network for model in alone])
        super().__init__(first.name, first.task, first.options, network)
        self.network: StackedNetwork = network
        self.seeds = len(alone)
        self.train(first.training)

    def __len__(self) -> int:
        return self.seeds

    def forward(
        self,
        tokens: Tensor,
        lengths: Lengths | None = None,
        target: Tensor | None = None,
        *,
        noise: Tensor | None = None,
    ) -> Tensor:
        """Shapes: as above; `noise` (S,) holds a key for each seed."""
        if tokens.dim() != 3 or tokens.shape[0] != self.seeds:
            raise ValueError(
                f"tokens of shape {tuple(tokens.shape)}: expected (S, B, L) with S={self.seeds}"
            )
        given = {"lengths": (lengths, 2), "target": (target, 3)}
        for name, (tensor, rank) in given.items():
            if tensor is not None:
                shape = tuple(torch.as_tensor(tensor).shape)
                if len(shape) != rank or shape[:2] != tokens.shape[:2]:
                    layout = "(S, B)" if rank == 2 else "(S, B, O)"
                    raise ValueError(
                        f"{name} of shape {shape}: expected {layout} "
                        f"with S={self.seeds}, B={tokens.shape[1]}"
                    )
        logits = super().forward(
            tokens.flatten(0, 1),
            None if lengths is None else torch.as_tensor(lengths).flatten(),
            None if target is None else target.flatten(0, 1),
            noise=noise,
        )
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


class StackedNetwork(nn.Module):
    """Networks of one shape as one, over rows (S * B, ...) in the order of the seeds."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.seeds, self.way = len(networks), copy.deepcopy(networks[0])
        self.reads_ids = getattr(networks[0], "reads_ids", False)
        weights = [dict(network.named_parameters()) for network in networks]
        for name in weights[0]:
            stacked = torch.stack([one[name].detach() for one in weights])
            _put(self.way, name, stacked)
        _set_fused(self.way, False)

    def forward(self, x: Tensor, reading: Reading, target: Tensor | None = None) -> Tensor:
        """Shapes: `x` (S * B, T, D), or ids (S * B, T); logits (S * B, O, C)."""
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


def _described(model: Model) -> str:
    """All in which stacked models must agree."""
    where = next(model.parameters())
    return f"{model.name} for {model.task.name} with {model.options}, {where.dtype}, {where.device}"


def _put(network: nn.Module, name: str, weight: Tensor) -> None:
    path, _, last = name.rpartition(".")
    setattr(network.get_submodule(path), last, nn.Parameter(weight))


def _set_fused(network: nn.Module, fused: bool) -> None:
    """Libraries that run one network fast cannot run many at once."""
    for module in network.modules():
        if hasattr(module, "fused"):
            module.fused = fused  # type: ignore[assignment]
