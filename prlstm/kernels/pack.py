"""Weights are put in tiles, in Triton; letters and prefixes as in `prlstm.kernels.block`."""

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
        if tl.program_id(1) == 0:
            b_bias = tl.load(p_bias + o_row, m_h, 0.0)
            tl.store(p_tiled_bias + o_tiled, b_bias.to(tl.float32))
