"""Everything a run needs to go on, in one file: written beside its name, then moved into place.

One file, so that a kill between two files cannot leave weights of one step beside an optimiser of
another. Nothing is pickled.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from prlstm.files import write_whole
from prlstm.models import Model, Stacked
from prlstm.training.optimizer import MOMENTS
from prlstm.training.trainer import Trainer

FORMAT, KEY = "prlstm checkpoint 1", "checkpoint"
# the weights, their average where there is one, and the moments of the optimiser
PARTS = ("weights", "average", *MOMENTS)

Tensors = Mapping[str, Tensor]


@dataclass(frozen=True)
class Checkpoint:
    """One seed after a number of steps: for each of `PARTS` a tensor for every weight."""

    step: int
    run: str
    parts: Mapping[str, Tensors]

    @property
    def weights(self) -> Tensors:
        """The weights by the names of the network."""
        return self.parts["weights"]

    def write(self, path: Path) -> None:
        """Write it, whole or not at all."""
        tensors = {
            f"{part}/{name}": tensor.contiguous()
            for part, named in self.parts.items()
            for name, tensor in named.items()
        }
        # one entry: the order of several is not fixed, and equal runs give equal bytes
        metadata = {KEY: json.dumps({"format": FORMAT, "run": self.run, "step": self.step})}
        write_whole(path, save(tensors, metadata))

    @staticmethod
    def read(path: Path) -> "Checkpoint":
        """Read it, or say what is wrong with the file."""
        with _opened(path) as file:
            step, run = _header(path, file)
            names = file.keys()
            tensors = {name: file.get_tensor(name) for name in names}
        parts: dict[str, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            part, _, rest = name.partition("/")
            if part not in PARTS:
                raise ValueError(f"{path}: {name!r:.80} is not expected in a checkpoint")
            parts.setdefault(part, {})[rest] = tensor
        return Checkpoint(step, run, parts)


def read_step(path: Path) -> int:
    """After how many steps a checkpoint was taken: its tensors are not read."""
    with _opened(path) as file:
        return _header(path, file)[0]


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    if not path.is_file():
        raise ValueError(f"{path}: expected a file")
    try:
        with safe_open(path, "pt") as file:
            yield file
    except (SafetensorError, RecursionError) as damaged:
        raise ValueError(f"{path}: not a whole checkpoint ({damaged})") from None


def _header(path: Path, file: Any) -> tuple[int, str]:
    """Step and run."""
    try:
        said = json.loads((file.metadata() or {}).get(KEY, "{}"))
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise ValueError(f"{path}: not a checkpoint of a run, expected format {FORMAT!r}")
    if type(said.get("step")) is not int or said["step"] < 0:
        raise ValueError(f"{path}: step={said.get('step')!r}, expected an integer >= 0")
    return said["step"], str(said.get("run"))


def take(trainer: Trainer) -> list[Checkpoint]:
    """A checkpoint of every run, as it is now."""
    parts = {
        part: {name: tensor.detach().cpu() for name, tensor in named.items()}
        for part, named in _parts(trainer).items()
    }
    return [
        Checkpoint(
            trainer.step,
            run.name,
            {part: {name: t[seed] for name, t in named.items()} for part, named in parts.items()},
        )
        for seed, run in enumerate(trainer.runs)
    ]


def restore(trainer: Trainer, checkpoints: Sequence[Checkpoint]) -> None:
    """Put a fresh trainer where checkpoints of all its runs were taken."""
    expected = {
        f"{part}/{name}": tensor.shape[1:]
        for part, named in _parts(trainer).items()
        for name, tensor in named.items()
    }
    for run, checkpoint in zip(trainer.runs, checkpoints, strict=True):
        if checkpoint.run != run.name:
            raise ValueError(f"a checkpoint of {checkpoint.run!r:.80}: expected one of {run.name}")
        if checkpoint.step != checkpoints[0].step:
            raise ValueError(
                f"{run.name} stands at step {checkpoint.step}, {checkpoints[0].run} at "
                f"{checkpoints[0].step}: expected one step for all"
            )
        given = {
            f"{part}/{name}": tensor.shape
            for part, named in checkpoint.parts.items()
            for name, tensor in named.items()
        }
        for name in expected.keys() | given.keys():
            if expected.get(name) != given.get(name):
                raise ValueError(
                    f"the checkpoint of {run.name}: {name} has shape {_shown(given.get(name))}, "
                    f"expected {_shown(expected.get(name))}"
                )
    trainer.go_on_from(checkpoints[0].step)
    with torch.no_grad():
        for part, named in _parts(trainer).items():
            for name, tensor in named.items():
                tensor.copy_(torch.stack([one.parts[part][name] for one in checkpoints]))


def _shown(shape: torch.Size | None) -> str:
    return "none" if shape is None else str(tuple(shape))


def _parts(trainer: Trainer) -> dict[str, dict[str, Tensor]]:
    """What a trainer holds, with an axis of seeds: views, so that it can be written to."""
    own = _own(trainer.model)
    parts: dict[str, dict[str, Tensor]] = {"weights": dict(own)}
    if trainer.average is not None:
        parts["average"] = dict(_own(trainer.average))
    for moment in MOMENTS:
        parts[moment] = {
            name: trainer.optimizer.moment(moment, weight) for name, weight in own.items()
        }
    alone = trainer.model.seeds == 1
    return {
        part: {name: tensor[None] if alone else tensor for name, tensor in named.items()}
        for part, named in parts.items()
    }


def _own(model: Model) -> dict[str, torch.nn.Parameter]:
    """The weights by the names of a lone network."""
    way = model.network.get_submodule("way" if isinstance(model, Stacked) else "")
    return dict(way.named_parameters())
