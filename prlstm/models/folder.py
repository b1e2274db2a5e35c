"""A model in a folder: `config.json` and `model.safetensors`. Nothing is pickled."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from prlstm.models.model import Model
from prlstm.models.registry import build

CONFIG, WEIGHTS = "config.json", "model.safetensors"


def save(model: Model, folder: Path | str) -> None:
    """Write a model: each file beside its final name first, then moved into place."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    weights = {name: weight.contiguous() for name, weight in model.state_dict().items()}
    config = {
        "model": model.name,
        "task": model.task.name,
        "hyper_parameters": asdict(model.options),
    }
    beside = path / f".{WEIGHTS}.new"
    save_file(weights, beside)
    beside.replace(path / WEIGHTS)
    beside = path / f".{CONFIG}.new"
    beside.write_text(json.dumps(config, indent=2) + "\n")
    beside.replace(path / CONFIG)


def load(folder: Path | str, device: torch.device | str | None = None) -> Model:
    """Read a model, ready to answer: in evaluation mode, on the CPU unless a device is named."""
    path = Path(folder)
    for name in (CONFIG, WEIGHTS):
        if not (path / name).is_file():
            raise FileNotFoundError(f"folder={str(folder)!r}: expected a file {name} in it")
    config = _read_config(path / CONFIG)
    model = build(config["model"], config["task"], **config["hyper_parameters"])
    try:
        weights = load_file(path / WEIGHTS)
    except SafetensorError as damaged:
        raise ValueError(f"{path / WEIGHTS}: not a whole file of weights ({damaged})") from None
    expected = model.state_dict()
    for name in (*expected, *weights):
        shapes = [tuple(one[name].shape) if name in one else "none" for one in (weights, expected)]
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"{path / WEIGHTS}: {name} has shape {shapes[0]}, but {CONFIG} makes it {shapes[1]}"
            )
    dtypes = {weight.dtype for weight in weights.values()}
    if len(dtypes) == 1:
        model.to(dtypes.pop())
    model.load_state_dict(weights)
    return model.to(device).eval()


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
    # JSON has no tuples
    config["hyper_parameters"] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in config["hyper_parameters"].items()
    }
    return config
