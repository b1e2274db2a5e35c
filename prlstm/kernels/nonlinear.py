"""Sigmoid and tanh inside kernels, and their slopes: none of them overflows or cancels."""

import triton
import triton.language as tl


@triton.jit
def _tanh_exact(x):
    """Right to the last bits for all x: near zero `1 - exp(-2x)` would cancel."""
    size = tl.abs(x)
    e = tl.exp(-2.0 * size)
    far = (1.0 - e) / (1.0 + e)
    # what is not near is not used, and must not overflow
    near = tl.where(size < 0.625, x, 0.0)
    x2 = near * near
    # minimax for (tanh(x) - x) / x^3 below 0.625, relative error of the sum 5e-9
    slope = -0.00570497848 * x2 + 0.0206390787
    slope = slope * x2 - 0.0537397116
    slope = slope * x2 + 0.133314416
    slope = slope * x2 - 0.333332807
    return tl.where(size < 0.625, near + near * x2 * slope, tl.where(x < 0, -far, far))


@triton.jit
def _tanh_fast(x):
    """The hardware's own, relative error 5e-4: as much as half precision can show."""
    return tl.inline_asm_elementwise(
        "tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
    )


@triton.jit
def tanh(x, FAST: tl.constexpr):
    """Exact, or as fast as the hardware can."""
    if FAST:
        return _tanh_fast(x)
    else:
        return _tanh_exact(x)


@triton.jit
def sigmoid(x, FAST: tl.constexpr):
    """Exact, or as fast as the hardware can."""
    if FAST:
        return 0.5 * _tanh_fast(0.5 * x) + 0.5
    else:
        e = tl.exp(-tl.abs(x))
        return tl.where(x < 0, e, 1.0) / (1.0 + e)


@triton.jit
def sigmoid_and_slope(x):
    """Sigmoid and its slope, which is exact however far the gate is open or shut."""
    e = tl.exp(-tl.abs(x))
    r = 1.0 / (1.0 + e)
    return tl.where(x < 0, e * r, r), e * r * r


@triton.jit
def tanh_and_slope(x):
    """Tanh and its slope, likewise."""
    e = tl.exp(-2.0 * tl.abs(x))
    r = 1.0 / (1.0 + e)
    return _tanh_exact(x), 4.0 * e * r * r
