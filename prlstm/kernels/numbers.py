"""Uniform numbers by a hash of where they stand, in Triton: those of `prlstm.stream`."""

import triton
import triton.language as tl

# as signed integers
FIRST = tl.constexpr(0xBF58476D1CE4E5B9 - (1 << 64))
SECOND = tl.constexpr(0x94D049BB133111EB - (1 << 64))
STRIDE = tl.constexpr(0x9E3779B97F4A7C15 - (1 << 64))


@triton.jit
def _mixed(x):
    """Every bit depends on every bit. Products wrap around; zeros are shifted in."""
    x = (x ^ ((x >> 30) & ((1 << 34) - 1))) * FIRST
    x = (x ^ ((x >> 27) & ((1 << 37) - 1))) * SECOND
    return x ^ ((x >> 31) & ((1 << 33) - 1))


@triton.jit(do_not_specialize=["step", "count", "first"])
def draw(p_key, p_step, step, p_numbers, count, first, BLOCK: tl.constexpr):
    """Numbers (K, count) in [0, 1) for keys (K,): those of a step from `first` on.

    The step is a number, or stands at `p_step`. Grid: (blocks, K).
    """
    i_key = tl.program_id(1)
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    # as blocks from the start: of single numbers the interpreter says that they overflow
    b_none = tl.zeros((BLOCK,), tl.int64)
    b_step = b_none + step
    if p_step is not None:
        b_step = tl.load(p_step + b_none)
    b_key = _mixed(tl.load(p_key + i_key + b_none) + STRIDE * b_step)
    b_state = _mixed(b_key + STRIDE * (first + 1 + o).to(tl.int64))
    b_number = ((b_state >> 40) & ((1 << 24) - 1)).to(tl.float32) * (1.0 / (1 << 24))
    tl.store(p_numbers + i_key.to(tl.int64) * count + o, b_number, o < count)
