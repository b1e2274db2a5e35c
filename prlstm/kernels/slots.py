"""What streams keep, in Triton: new blocks and prefixes of some of them are put in their places.

Letters and prefixes as in `prlstm.kernels.block`; a slot is the place of a stream. The number of
rows is `p_counts[counted]`.
"""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["counted"])
def put_states(
    p_h,
    p_c,
    p_h_folded,
    p_c_folded,
    p_counts,
    counted,
    p_slots,
    p_stops,
    p_folds,
    p_h_blocks,
    p_c_blocks,
    p_h_folds,
    p_c_folds,
    p_h_last,
    H: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_H: tl.constexpr,
):
    """New blocks to the places `p_stops`, prefixes there too, and their h to the slot.

    A prefix is the folded state, or where `p_folds` is below 0 the block itself. Grid: (tiles,).
    """
    rows = tl.load(p_counts + counted)
    if tl.program_id(0) * BLOCK_M >= rows:
        return
    o_row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    m_row = o_row < rows
    o_h = tl.arange(0, BLOCK_H)
    m_h = (o_h < H)[None, :]
    m = m_row[:, None] & m_h
    o_in = o_row.to(tl.int64)[:, None] * H + o_h[None, :]
    o_out = tl.load(p_stops + o_row, m_row, 0).to(tl.int64)[:, None] * H + o_h[None, :]
    b_h, b_c = tl.load(p_h + o_in, m), tl.load(p_c + o_in, m)
    tl.store(p_h_blocks + o_out, b_h, m)
    tl.store(p_c_blocks + o_out, b_c, m)
    is_folded = (tl.load(p_folds + o_row, m_row, -1) >= 0)[:, None]
    b_h = tl.where(is_folded, tl.load(p_h_folded + o_in, m), b_h)
    b_c = tl.where(is_folded, tl.load(p_c_folded + o_in, m), b_c)
    tl.store(p_h_folds + o_out, b_h, m)
    tl.store(p_c_folds + o_out, b_c, m)
    o_out = tl.load(p_slots + o_row, m_row, 0).to(tl.int64)[:, None] * H + o_h[None, :]
    tl.store(p_h_last + o_out, b_h, m)


@triton.jit(do_not_specialize=["counted"])
def copy_states(
    p_h,
    p_c,
    p_h_out,
    p_c_out,
    p_counts,
    counted,
    H: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_H: tl.constexpr,
):
    """The first states of one array to another. Grid: (tiles of rows,)."""
    rows = tl.load(p_counts + counted)
    if tl.program_id(0) * BLOCK_M >= rows:
        return
    o_row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    o_h = tl.arange(0, BLOCK_H)
    m = (o_row < rows)[:, None] & (o_h < H)[None, :]
    o = o_row.to(tl.int64)[:, None] * H + o_h[None, :]
    tl.store(p_h_out + o, tl.load(p_h + o, m), m)
    tl.store(p_c_out + o, tl.load(p_c + o, m), m)
