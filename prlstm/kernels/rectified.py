"""A read-out of few classes, `relu(h) @ weight.T + bias`, in Triton, forward and backward.

Letters and prefixes as in `prlstm.kernels.block`; C is the number of classes, a row is one of B
rows of the batch at one of L places. `where` holds the strides of seed, batch and place.
"""

import triton
import triton.language as tl


@triton.jit
def _rows_of(p_h, i_seed, o_row, length, where):
    o_batch, o_l = (o_row // length).to(tl.int64), (o_row % length).to(tl.int64)
    return p_h + (i_seed.to(tl.int64) * where[0] + o_batch * where[1] + o_l * where[2])[:, None]


@triton.jit
def _positive(b):
    """The positive half; what is no number stays none, which a maximum would hide."""
    return tl.where(b < 0, 0.0, b).to(b.dtype)


@triton.jit(do_not_specialize=["rows", "length"])
def read_out(
    p_h,
    where,
    p_weight,
    p_bias,
    p_logits,
    rows,
    length,
    H: tl.constexpr,
    C: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_C: tl.constexpr,
    OPERAND: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Logits (S, rows, C) of some rows. Grid: (tiles of rows, S)."""
    i_seed = tl.program_id(1)
    o_row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    o_c = tl.arange(0, BLOCK_C)
    m_row, m_c = (o_row < rows)[:, None], o_c < C
    p_rows = _rows_of(p_h, i_seed, tl.minimum(o_row, rows - 1), length, where)
    b_x = tl.zeros((BLOCK_M, BLOCK_C), tl.float32)
    for start in range(0, H, BLOCK_H):
        o_h = start + tl.arange(0, BLOCK_H)
        m_h = o_h < H
        b_h = tl.load(p_rows + o_h[None, :], m_row & m_h[None, :], 0.0).to(OPERAND)
        p_w = p_weight + ((i_seed * C + o_c) * H)[None, :] + o_h[:, None]
        b_w = tl.load(p_w, m_h[:, None] & m_c[None, :], 0.0).to(OPERAND)
        b_x = tl.dot(_positive(b_h), b_w, b_x, input_precision=PRECISION)
    b_x += tl.load(p_bias + i_seed * C + o_c, m_c, 0.0).to(tl.float32)[None, :]
    o_out = (i_seed.to(tl.int64) * rows + o_row) * C
    tl.store(p_logits + o_out[:, None] + o_c[None, :], b_x, m_row & m_c[None, :])


@triton.jit(do_not_specialize=["rows", "length", "each"])
def read_out_backward(
    p_h,
    where,
    p_weight,
    p_dlogits,
    p_dh,
    p_dweight,
    p_dbias,
    rows,
    length,
    each,
    H: tl.constexpr,
    C: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_C: tl.constexpr,
    OPERAND: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Gradients of some features of h (S, rows, H), and of the weights, summed over `each` rows.

    `p_dweight` (S, splits, C, H) and `p_dbias` (S, splits, C) hold a sum for every split, in fixed
    order. Grid: (splits, tiles of features, S).
    """
    i_split, i_h, i_seed = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    o_h, o_c = i_h * BLOCK_H + tl.arange(0, BLOCK_H), tl.arange(0, BLOCK_C)
    m_h, m_c = (o_h < H)[None, :], o_c < C
    p_w = p_weight + ((i_seed * C + o_c) * H)[:, None] + o_h[None, :]
    b_w = tl.load(p_w, m_c[:, None] & m_h, 0.0).to(OPERAND)
    b_dw = tl.zeros((BLOCK_C, BLOCK_H), tl.float32)
    b_db = tl.zeros((BLOCK_C,), tl.float32)
    stop = tl.minimum(rows, (i_split + 1) * each)
    for start in range(i_split * each, stop, BLOCK_M):
        o_row = start + tl.arange(0, BLOCK_M)
        m_row = (o_row < stop)[:, None]
        o_flat = i_seed.to(tl.int64) * rows + o_row
        p_rows = _rows_of(p_h, i_seed, tl.minimum(o_row, rows - 1), length, where)
        b_h = tl.load(p_rows + o_h[None, :], m_row & m_h, 0.0).to(OPERAND)
        p_dx = p_dlogits + (o_flat * C)[:, None] + o_c[None, :]
        b_dx = tl.load(p_dx, m_row & m_c[None, :], 0.0).to(tl.float32)
        b_db += tl.sum(b_dx, 0)
        b_dx = b_dx.to(OPERAND)
        b_dh = tl.dot(b_dx, b_w, input_precision=PRECISION)
        b_dh = tl.where(b_h <= 0, 0.0, b_dh).to(p_dh.dtype.element_ty)
        tl.store(p_dh + (o_flat * H)[:, None] + o_h[None, :], b_dh, m_row & m_h)
        b_dw = tl.dot(tl.trans(b_dx), _positive(b_h), b_dw, input_precision=PRECISION)
    o_part = (i_seed * tl.num_programs(0) + i_split).to(tl.int64) * C + o_c
    tl.store(p_dweight + (o_part * H)[:, None] + o_h[None, :], b_dw, m_c[:, None] & m_h)
    if i_h == 0:
        tl.store(p_dbias + o_part, b_db, m_c)
