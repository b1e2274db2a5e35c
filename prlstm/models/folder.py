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
from prlstm.files import read_object, write_whole
from prlstm.models.model import Model
from prlstm.models.registry import assembled, kind
from prlstm.models.shipping import FOLDER, shipped
from prlstm.models.stacked import Stacked

CONFIG = "config.json"
# of a run there may be several: the last, those that validated best, and their average
WEIGHTS = {
    "last": "model.safetensors",
    "best": "best.safetensors",
    "average": "average.safetensors",
}


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
    write_whole(path / WEIGHTS["last"], serialized(weights))
    write_whole(path / CONFIG, (json.dumps(config, indent=2) + "\n").encode())


def folder_of(name: Path | str) -> Path:
    """The folder of a shipped model by its name; any other path as it is, and a model there first.

    A folder of that name that holds something else is not meant.
    """
    path = Path(name)
    if not (path / CONFIG).exists() and str(name) in shipped():
        return FOLDER / str(name)
    return path


def load(
    folder: Path | str, device: torch.device | str | None = None, *, weights: str = "last"
) -> Model:
    """Read a model, ready to answer: in evaluation mode, on the CPU unless a device is named.

    `folder` may also be the name of a model that comes with the package, as "parity_check"
    (`prlstm.models.shipped()` has them all). Of a run, `weights` may also be "best" (those that
    validated best) or "average".
    """
    if weights not in WEIGHTS:
        raise ValueError(f"weights={weights!r}: expected one of {', '.join(WEIGHTS)}")
    path, file = folder_of(folder), WEIGHTS[weights]
    if not path.exists():
        known = ", ".join(shipped())
        raise FileNotFoundError(f"folder={str(folder)!r}: expected a folder, or one of {known}")
    if path.parent == FOLDER and file != WEIGHTS["last"]:
        raise ValueError(
            f"weights={weights!r}: expected 'last' of {path.name}, as models come with the package"
        )
    for name in (CONFIG, file):
        if not (path / name).is_file():
            raise FileNotFoundError(f"folder={str(folder)!r}: expected a file {name} in it")
    config = _read_config(path / CONFIG)
    try:
        options = kind(config["model"]).options.read(config["model"], config["hyper_parameters"])
        # shapes alone, until the file has been seen to hold them: sizes may be anybody's
        with torch.device("meta"):
            model = assembled(config["model"], tasks.get(config["task"]), options, seed=None)
    except (TypeError, ValueError, OverflowError, RuntimeError) as wrong:
        raise ValueError(f"{path / CONFIG}: {wrong}") from None
    try:
        given = load_file(path / file)
    except SafetensorError as damaged:
        raise ValueError(f"{path / file}: not a whole file of weights ({damaged})") from None
    _check_weights(path / file, given, model.state_dict())
    # copies: a file that changes under its model would change the model
    model.load_state_dict({name: w.clone() for name, w in given.items()}, assign=True)
    return model.requires_grad_().to(device).eval()


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
    config = read_object(path)
    keys = {"model": str, "task": str, "hyper_parameters": dict}
    if not all(isinstance(config.get(key), kind) for key, kind in keys.items()):
        raise ValueError(f"{path}: expected an object with {', '.join(keys)}")
    return config
