"""A model in a folder: `config.json` and `model.safetensors`. Nothing is pickled."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as serialized
from torch import Tensor

from prlstm import tasks
from prlstm.files import write_whole
from prlstm.models.model import Model
from prlstm.models.registry import assembled, kind
from prlstm.models.stacked import Stacked

CONFIG, WEIGHTS = "config.json", "model.safetensors"


def save(model: Model, folder: Path | str) -> None:
    """Write a model. What a folder holds under the names of its files is replaced."""
    if not isinstance(model, Model) or isinstance(model, Stacked):
        raise TypeError(
            f"model is a {type(model).__name__}: expected a Model; "
            "of stacked ones save each of `unstacked()`"
        )
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"folder={str(folder)!r}: expected a folder, this is a file")
    path.mkdir(parents=True, exist_ok=True)
    weights = {name: weight.contiguous() for name, weight in model.state_dict().items()}
    config = {
        "model": model.name,
        "task": model.task.name,
        "hyper_parameters": asdict(model.options),
    }
    write_whole(path / WEIGHTS, serialized(weights))
    write_whole(path / CONFIG, (json.dumps(config, indent=2) + "\n").encode())


def load(folder: Path | str, device: torch.device | str | None = None) -> Model:
    """Read a model, ready to answer: in evaluation mode, on the CPU unless a device is named."""
    path = Path(folder)
    for name in (CONFIG, WEIGHTS):
        if not (path / name).is_file():
            raise FileNotFoundError(f"folder={str(folder)!r}: expected a file {name} in it")
    config = _read_config(path / CONFIG)
    try:
        options = kind(config["model"]).options.read(config["model"], config["hyper_parameters"])
        # drawn with a seed, so that nothing of the user's random numbers is used up
        model = assembled(config["model"], tasks.get(config["task"]), options, seed=0)
    except (TypeError, ValueError) as wrong:
        raise ValueError(f"{path / CONFIG}: {wrong}") from None
    try:
        weights = load_file(path / WEIGHTS)
    except SafetensorError as damaged:
        raise ValueError(f"{path / WEIGHTS}: not a whole file of weights ({damaged})") from None
    _check_weights(path / WEIGHTS, weights, model.state_dict())
    model.to(next(iter(weights.values())).dtype)
    model.load_state_dict(weights)
    return model.to(device).eval()


def _check_weights(path: Path, given: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Whether a file holds what the configuration makes: the names, their shapes, one type."""
    dtype = next(iter(given.values())).dtype if given else None
    for name, weight in expected.items():
        if name not in given:
            raise ValueError(f"{path}: {name} is missing, {CONFIG} makes it {tuple(weight.shape)}")
        if given[name].shape != weight.shape:
            raise ValueError(
                f"{path}: {name} has shape {tuple(given[name].shape)}, "
                f"but {CONFIG} makes it {tuple(weight.shape)}"
            )
        if given[name].dtype != dtype or not given[name].is_floating_point():
            raise ValueError(
                f"{path}: {name} has type {given[name].dtype}, expected one floating-point type "
                "for all"
            )
    for name in given:
        if name not in expected:
            raise ValueError(
                f"{path}: {name} of shape {tuple(given[name].shape)} is not expected, "
                f"{CONFIG} makes no such tensor"
            )


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text())
    except ValueError as wrong:
        raise ValueError(f"{path}: not JSON ({wrong})") from None
    keys = {"model": str, "task": str, "hyper_parameters": dict}
    if not isinstance(config, dict) or not all(
        isinstance(config.get(key), kind) for key, kind in keys.items()
    ):
        raise ValueError(f"{path}: expected an object with {', '.join(keys)}")
    return config
