"""Comparison of tensors by a scale-free error, and the tolerances in one table."""

import torch
from torch import Tensor

# relative RMS error against float64, forward and gradient
TOLERANCE = {
    torch.float64: (1e-12, 1e-10),
    torch.float32: (1e-6, 3e-6),
    torch.float16: (2e-3, 5e-3),
    torch.bfloat16: (1e-2, 2e-2),
}
# reference arrays are stored as float32
STORED = (1e-6, 1e-5)


def relative_error(got: Tensor, want: Tensor) -> float:
    """RMS(got - want) / RMS(want)."""
    got, want = got.detach().cpu().double(), want.detach().cpu().double()
    rms = want.square().mean().sqrt().clamp(min=1e-12)
    return float((got - want).square().mean().sqrt() / rms)


def assert_rel(name: str, got: Tensor, want: Tensor, tolerance: float) -> None:
    """Fail when RMS(got - want) / RMS(want) exceeds `tolerance`, or on any non-finite value."""
    got, want = got.detach().cpu().double(), want.detach().cpu().double()
    assert got.shape == want.shape, f"{name}: {tuple(got.shape)} != {tuple(want.shape)}"
    assert got.isfinite().all(), f"{name}: non-finite value"
    if got.numel() == 0:
        return
    error = relative_error(got, want)
    assert error <= tolerance, f"{name}: relative RMS error {error:.2e} > {tolerance:.0e}"


def assert_same(name: str, got: Tensor, want: Tensor) -> None:
    """`assert_rel` for two ways of computing one thing in the same type."""
    assert got.dtype == want.dtype, f"{name}: {got.dtype} != {want.dtype}"
    assert_rel(name, got, want, TOLERANCE[want.dtype][0])
