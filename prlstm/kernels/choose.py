"""Whether kernels are used, and in which arithmetic: the one place that decides."""

from importlib.util import find_spec
from typing import NamedTuple

import torch
from torch import Tensor

from prlstm.kernels.check import OPERANDS

BACKENDS = ("eager", "triton")
HAS_TRITON = find_spec("triton") is not None


class Products(NamedTuple):
    """The type of the operands of products, and how those of float32 are computed."""

    operand: torch.dtype
    precision: str


def choose(backend: str | None, weight: Tensor) -> Products | None:
    """The arithmetic of the kernels for a layer with this weight; None: they are not used.

    Without a backend they are used on CUDA devices, but for exact products of float32, where
    cuBLAS is several times faster than what Triton makes of them.
    """
    if backend == "eager":
        return None
    kind = weight.device.type
    # the compiler of older PyTorch cannot ask whether there is autocast for a device
    is_autocast = kind in ("cpu", "cuda") and torch.is_autocast_enabled(kind)
    operand = weight.dtype
    if is_autocast and operand in OPERANDS:
        operand = torch.get_autocast_dtype(kind)
    tf32 = kind == "cuda" and _is_tf32()
    products = Products(operand, "tf32" if tf32 else "ieee")
    if backend == "triton":
        if operand not in OPERANDS:
            names = ", ".join(map(str, OPERANDS))
            raise TypeError(f"backend='triton': weights are {operand}, expected one of {names}")
        if kind != "cuda" and not _is_interpreted():
            raise ValueError(f"backend='triton': weights are on {kind}, expected a CUDA device")
        return products
    exact = operand == torch.float32 and not tf32
    usable = _is_there(kind) and operand in OPERANDS and not exact
    return products if usable else None


def is_usable(tensor: Tensor) -> bool:
    """Whether kernels can be launched on a plain tensor."""
    if not _is_there(tensor.device.type) or torch.compiler.is_compiling():
        return False
    # one that `vmap` hands on is no memory
    return not torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def _is_there(kind: str) -> bool:
    # the kernels know instructions of NVIDIA's devices
    return kind == "cuda" and torch.version.hip is None and HAS_TRITON


def _is_tf32() -> bool:
    return bool(torch.backends.cuda.matmul.fp32_precision == "tf32")


def _is_interpreted() -> bool:
    from prlstm.kernels import block

    return block.INTERPRETED


# The compiler cannot look into these, and need not: they are settings. That is what
# `torch.compiler.assume_constant_result` says; but calling it would import the compiler.
_is_tf32._dynamo_marked_constant = True  # type: ignore[attr-defined]
_is_interpreted._dynamo_marked_constant = True  # type: ignore[attr-defined]


def check_backend(backend: str | None) -> None:
    """Raise unless this is None or the name of a backend that is there."""
    if backend is not None and backend not in BACKENDS:
        names = " or ".join(map(repr, BACKENDS))
        raise ValueError(f"backend={backend!r}: expected {names}, or None to have it chosen")
    if backend == "triton" and not HAS_TRITON:
        raise ValueError("backend='triton': expected the package triton, which is not installed")
