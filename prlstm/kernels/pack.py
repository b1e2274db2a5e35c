"""What is put in place before the products, in Triton: weights in tiles, entries of a table.

Letters and prefixes as in `prlstm.kernels.block`.
"""

import triton
import triton.language as tl


@triton.jit
def pack_weights(
    p_weight,
    p_bias,
    p_tiled,
    p_tiled_bias,
    G: tl.constexpr,
    H: tl.constexpr,
    K: tl.constexpr,
    STATES: tl.constexpr,
    TILES: tl.constexpr,
    SPACING: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """The rows of one gate in one tile of features, some columns. Grid: (TILES * G, columns, S).

    From (S, G H, STATES K) to (S, TILES, G, BLOCK_H, STATES SPACING), zero where there is none.
    """
    i_tile, i_gate, i_seed = tl.program_id(0) // G, tl.program_id(0) % G, tl.program_id(2)
    o_h = i_tile * BLOCK_H + tl.arange(0, BLOCK_H)
    o_column = tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)
    i_state, o_k = o_column // SPACING, o_column % SPACING
    m_h = o_h < H
    o_row = (i_seed * G + i_gate) * H + o_h
    p_row = p_weight + o_row.to(tl.int64)[:, None] * (STATES * K)
    m = m_h[:, None] & ((o_k < K) & (i_state < STATES))[None, :]
    b_w = tl.load(p_row + (i_state * K + o_k)[None, :], m, 0.0)
    o_tiled = (i_seed * TILES * G + tl.program_id(0)) * BLOCK_H + tl.arange(0, BLOCK_H)
    p_row = p_tiled + o_tiled.to(tl.int64)[:, None] * (STATES * SPACING)
    m = (i_state < STATES)[None, :]
    tl.store(p_row + o_column[None, :], b_w.to(p_tiled.dtype.element_ty), m)
    if p_bias is not None:
        # every program of the row, for the same value
        b_bias = tl.load(p_bias + o_row, m_h, 0.0)
        tl.store(p_tiled_bias + o_tiled, b_bias.to(tl.float32))


@triton.jit(do_not_specialize=["entries", "batch", "length", "width", "tiles"])
def look_up(
    p_table, p_codes, p_out, entries, batch, length, width, tiles, H: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_H: tl.constexpr,
):  # fmt: skip
    """Entries of a table (S, V, H) at codes (S, B, L), to the first L states of (S, B, width, H).

    Grid: (B times tiles of L, S).
    """
    i_seed = tl.program_id(1)
    i_row = i_seed * batch + tl.program_id(0) // tiles
    o_l = tl.program_id(0) % tiles * BLOCK_M + tl.arange(0, BLOCK_M)
    o_h = tl.arange(0, BLOCK_H)
    m = (o_l < length)[:, None] & (o_h < H)[None, :]
    o_code = tl.load(p_codes + i_row.to(tl.int64) * length + o_l, o_l < length, 0)
    o_entry = (i_seed * entries + o_code).to(tl.int64) * H
    b_entry = tl.load(p_table + o_entry[:, None] + o_h[None, :], m, 0.0)
    o_out = (i_row.to(tl.int64) * width + o_l) * H
    tl.store(p_out + o_out[:, None] + o_h[None, :], b_entry, m)
