"""In which type a run computes: weights, products, everything between."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

# what each of them means; weights, states and the optimiser are float32 but for the last
PRECISIONS = {
    "float32": "products in float32",
    "tf32": "products of float32 cut to TF32, on a GPU",
    "bfloat16": "products of bfloat16, accumulated in float32",
    "float64": "everything in float64",
}


def weight_type(precision: str) -> torch.dtype:
    """The type of the weights."""
    return torch.float64 if precision == "float64" else torch.float32


@contextmanager
def computing(precision: str, device: torch.device) -> Iterator[None]:
    """Compute in a precision, and leave PyTorch's settings as they were."""
    if precision == "tf32" and device.type != "cuda":
        raise ValueError(f"precision='tf32': expected a CUDA device, got {device}")
    settings: tuple[Any, ...] = (torch.backends.cuda.matmul, torch.backends.cudnn.rnn)
    before = [setting.fp32_precision for setting in settings]
    half = torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16")
    try:
        for setting in settings:
            setting.fp32_precision = "tf32" if precision == "tf32" else "ieee"
        with half:
            yield
    finally:
        for setting, value in zip(settings, before, strict=True):
            setting.fp32_precision = value
