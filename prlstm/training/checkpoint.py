"""Everything a run needs to go on, in one file: written beside its name, then moved into place.

One file, so that a kill between two files cannot leave weights of one step beside an optimiser of
another. Nothing is pickled.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from prlstm.files import write_whole
from prlstm.models import Stacked
from prlstm.training.trainer import Trainer

FORMAT, KEY = "prlstm checkpoint 1", "checkpoint"
MOMENTS = ("exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class Checkpoint:
    """One seed's weights, the moments of its optimiser, and after how many steps they were."""

    step: int
    run: str
    weights: dict[str, Tensor]
    moments: dict[str, dict[str, Tensor]]

    def write(self, path: Path) -> None:
        """Write it, whole or not at all."""
        tensors = {f"weights/{name}": weight for name, weight in self.weights.items()}
        for kind, moment in self.moments.items():
            tensors |= {f"{kind}/{name}": tensor for name, tensor in moment.items()}
        # one entry: the order of several is not fixed, and equal runs give equal bytes
        metadata = {KEY: json.dumps({"format": FORMAT, "run": self.run, "step": self.step})}
        contents = save({name: t.contiguous() for name, t in tensors.items()}, metadata)
        write_whole(path, contents)

    @staticmethod
    def read(path: Path) -> "Checkpoint":
        """Read it, or say what is wrong with the file."""
        try:
            with safe_open(path, "pt") as file:
                said = json.loads((file.metadata() or {}).get(KEY, "{}"))
                names = file.keys()
                tensors = {name: file.get_tensor(name) for name in names}
        except (SafetensorError, ValueError) as damaged:
            raise ValueError(f"{path}: not a whole checkpoint ({damaged})") from None
        if not isinstance(said, dict) or said.get("format") != FORMAT:
            raise ValueError(f"{path}: not a checkpoint of a run, expected format {FORMAT!r}")
        parts: dict[str, dict[str, Tensor]] = {kind: {} for kind in ("weights", *MOMENTS)}
        for name, tensor in tensors.items():
            kind, _, rest = name.partition("/")
            if kind not in parts:
                raise ValueError(f"{path}: {name} is not expected in a checkpoint")
            parts[kind][rest] = tensor
        weights = parts.pop("weights")
        return Checkpoint(int(said["step"]), str(said["run"]), weights, parts)


def take(trainer: Trainer) -> list[Checkpoint]:
    """A checkpoint of every run, as it is now."""
    stacked = _stacked(trainer)
    taken = []
    for seed, run in enumerate(trainer.runs):
        weights = {name: weight.detach()[seed].cpu() for name, weight in stacked.items()}
        moments = {
            kind: {name: _moment(trainer, name, kind)[seed].cpu() for name in stacked}
            for kind in MOMENTS
        }
        taken.append(Checkpoint(trainer.step, run.name, weights, moments))
    return taken


def restore(trainer: Trainer, checkpoints: Sequence[Checkpoint]) -> None:
    """Put a fresh trainer where checkpoints of all its runs were taken."""
    for run, checkpoint in zip(trainer.runs, checkpoints, strict=True):
        if checkpoint.run != run.name:
            raise ValueError(f"a checkpoint of {checkpoint.run}: expected one of {run.name}")
        if checkpoint.step != checkpoints[0].step:
            raise ValueError(
                f"{run.name} stands at step {checkpoint.step}, {checkpoints[0].run} at "
                f"{checkpoints[0].step}: expected one step for all"
            )
    trainer.step = checkpoints[0].step
    for name, weight in _stacked(trainer).items():
        parts = [checkpoint.weights[name] for checkpoint in checkpoints]
        with torch.no_grad():
            weight.copy_(torch.stack(parts))
        state = trainer.optimizer.state[_parameter(trainer, name)]
        # where Adam keeps it on the device that it is on
        where = weight.device if trainer.optimizer.defaults["fused"] else "cpu"
        state["step"] = torch.tensor(float(trainer.step), device=where)
        for kind in MOMENTS:
            parts = [checkpoint.moments[kind][name] for checkpoint in checkpoints]
            state[kind] = torch.stack(parts).view_as(_parameter(trainer, name)).to(weight.device)


def _parameter(trainer: Trainer, name: str) -> nn.Parameter:
    network = trainer.model.network
    return network.get_parameter(f"way.{name}" if trainer.model.seeds > 1 else name)


def _stacked(trainer: Trainer) -> dict[str, Tensor]:
    """The weights by the names of a lone network, with an axis of seeds."""
    stacked = isinstance(trainer.model, Stacked)
    way = trainer.model.network.get_submodule("way" if stacked else "")
    return {name: _by_seed(trainer, weight) for name, weight in way.named_parameters()}


def _moment(trainer: Trainer, name: str, kind: str) -> Tensor:
    weight = _parameter(trainer, name)
    return _by_seed(trainer, trainer.optimizer.state.get(weight, {}).get(kind, weight * 0).detach())


def _by_seed(trainer: Trainer, tensor: Tensor) -> Tensor:
    return tensor if trainer.model.seeds > 1 else tensor[None]
