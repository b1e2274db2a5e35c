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
def _power(x, FAST: tl.constexpr):
    """exp(x) for x <= 0, to the last bits or nearly so."""
    if FAST:
        return tl.inline_asm_elementwise(
            "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x * 1.4426950408889634],
            dtype=tl.float32, is_pure=True, pack=1,
        )  # fmt: skip
    else:
        return tl.exp(x)


@triton.jit
def _inverse(x, FAST: tl.constexpr):
    """1 / x, to the last bit or nearly so."""
    if FAST:
        return tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )
    else:
        return 1.0 / x


@triton.jit
def sigmoid_and_slope(x, FAST: tl.constexpr):
    """Sigmoid and its slope, which is exact however far the gate is open or shut."""
    e = _power(-tl.abs(x), FAST)
    r = _inverse(1.0 + e, FAST)
    return tl.where(x < 0, e * r, r), e * r * r


@triton.jit
def tanh_and_slope(x, FAST: tl.constexpr):
    """Tanh and its slope, likewise."""
    e = _power(-2.0 * tl.abs(x), FAST)
    r = _inverse(1.0 + e, FAST)
    if FAST:
        # what cancels near zero is less than half precision shows
        far = (1.0 - e) * r
        return tl.where(x < 0, -far, far), 4.0 * e * r * r
    else:
        return _tanh_exact(x), 4.0 * e * r * r
