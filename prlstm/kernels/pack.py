"""Weights are put in tiles before the products, and their gradients back, in Triton.

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


@triton.jit(do_not_specialize=["splits", "parts"])
def unpack_gradients(
    p_dweight,
    splits,
    p_dbias,
    parts,
    p_weight,
    p_bias,
    G: tl.constexpr,
    H: tl.constexpr,
    K: tl.constexpr,
    STATES: tl.constexpr,
    C: tl.constexpr,
    PADDED_K: tl.constexpr,
    FEATURES: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_P: tl.constexpr,
):
    """Some rows of the gradients of a weight and its bias: sums of all parts, in one order.

    From (S, splits, C, STATES PADDED_K) to (S, G H, STATES K), and from (S, parts, C) to (S, G H),
    where rows of C stand as `pack_weights` puts them. Grid: (tiles of rows, tiles of columns, S).
    """
    i_seed = tl.program_id(2).to(tl.int64)
    o_row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    m_row = o_row < G * H
    o_h = o_row % H
    o_tiled = o_h // FEATURES * (G * FEATURES) + o_row // H * FEATURES + o_h % FEATURES
    o_column = tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)
    o_padded = o_column // K * PADDED_K + o_column % K
    m = m_row[:, None] & (o_column < STATES * K)[None, :]
    o_in = o_tiled[:, None] * (STATES * PADDED_K) + o_padded[None, :]
    p_in = p_dweight + i_seed * splits * (C * STATES * PADDED_K) + o_in
    b_sum = tl.zeros((BLOCK_M, BLOCK_K), tl.float32)
    for _ in range(splits):
        b_sum += tl.load(p_in, m, 0.0)
        p_in += C * STATES * PADDED_K
    o_out = (i_seed * (G * H) + o_row)[:, None] * (STATES * K) + o_column[None, :]
    tl.store(p_weight + o_out, b_sum.to(p_weight.dtype.element_ty), m)
    if p_dbias is not None:
        if tl.program_id(1) == 0:
            b_parts = tl.zeros((BLOCK_P, BLOCK_M), tl.float32)
            o_part = tl.arange(0, BLOCK_P)
            p_part = p_dbias + i_seed * parts * C + o_part[:, None] * C + o_tiled[None, :]
            for start in range(0, parts, BLOCK_P):
                m_part = (start + o_part < parts)[:, None] & m_row[None, :]
                b_parts += tl.load(p_part, m_part, 0.0)
                p_part += BLOCK_P * C
            b_bias = tl.sum(b_parts, 0)
            p_out = p_bias + i_seed * (G * H) + o_row
            tl.store(p_out, b_bias.to(p_bias.dtype.element_ty), m_row)
