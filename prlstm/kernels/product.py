"""The products of the backward pass, in Triton: gradients of what came in, and of the weights.

Letters and prefixes as in `prlstm.kernels.block`; C is the number of columns of `dgates`, which
are ordered as the rows of the weights in tiles are.
"""

import triton
import triton.language as tl

from prlstm.kernels.block import place, tile_of


@triton.jit(do_not_specialize=["g_row", "g_rows", "left", "right", "rows", "length"])
def input_gradient(
    d_dgates,
    g_row,
    g_rows,
    d_weight,
    p_left,
    left,
    p_right,
    right,
    rows,
    length,
    C: tl.constexpr,
    K: tl.constexpr,
    STATES: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    PRECISION: tl.constexpr,
    ADD_LEFT: tl.constexpr,
    ADD_RIGHT: tl.constexpr,
    LINEAR: tl.constexpr,
    ALIGNED: tl.constexpr,
):
    """One tile of `dgates @ weight`, its columns put or added to where each incoming h stands.

    Grid: (tiles of rows times tiles of columns, S). The rows begin at `g_row`, and those of the
    next seed `g_rows` later.
    """
    N_TILES: tl.constexpr = (STATES * K + BLOCK_N - 1) // BLOCK_N
    i_seed = tl.program_id(1)
    i_m, i_n = tile_of(rows, BLOCK_M, N_TILES, GROUP_M)
    b_dz = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, C, BLOCK_K):
        b_g = d_dgates.load([i_seed * g_rows + g_row + i_m * BLOCK_M, start])
        b_w = d_weight.load([i_seed * C + start, i_n * BLOCK_N])
        b_dz = tl.dot(b_g, b_w, b_dz, input_precision=PRECISION)

    o_row = i_m * BLOCK_M + tl.arange(0, BLOCK_M)
    o_column = i_n * BLOCK_N + tl.arange(0, BLOCK_N)
    m = (o_row < rows)[:, None] & (o_column < STATES * K)[None, :]
    o_in = place(i_seed, o_row, length, left, LINEAR, ALIGNED)[:, None] + o_column[None, :]
    p_in = p_left + o_in
    m_add = m & ADD_LEFT
    if STATES == 2:
        o_in = place(i_seed, o_row, length, right, LINEAR, ALIGNED)[:, None]
        is_left = (o_column < K)[None, :]
        p_in = tl.where(is_left, p_in, p_right + o_in + (o_column - K)[None, :])
        m_add = m & tl.where(is_left, ADD_LEFT, ADD_RIGHT)
    if ADD_LEFT or ADD_RIGHT:
        b_dz += tl.load(p_in, m_add, 0.0).to(tl.float32)
    tl.store(p_in, b_dz.to(p_left.dtype.element_ty), m)


@triton.jit(do_not_specialize=["g_rows", "block_rows", "prefix_rows", "splits"])
def weight_gradient(
    d_dgates,
    g_rows,
    p_blocks,
    block_rows,
    p_prefixes,
    prefix_rows,
    p_chunks,
    p_split,
    p_dweight,
    splits,
    C: tl.constexpr,
    K: tl.constexpr,
    STATES: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr,
    FIELDS: tl.constexpr,
):
    """One tile of `dgates.T @ z` over the rows of one split; z is read where its states stand.

    Grid: (tiles, splits, S). A split is a range of chunks, a chunk so many rows of one level:
    `p_chunks` tells of each its first row, its rows, the row of its level that it begins with,
    the states of that level side by side, and where the left and the right states stand, in
    states. Without atomics, and every sum in one order.
    """
    N_TILES: tl.constexpr = (K + BLOCK_N - 1) // BLOCK_N
    i_m, i_n = tl.program_id(0) // (STATES * N_TILES), tl.program_id(0) % (STATES * N_TILES)
    i_split, i_seed = tl.program_id(1), tl.program_id(2)
    # a tile lies within one of the incoming states
    is_left = i_n < N_TILES
    o_n = tl.where(is_left, i_n, i_n - N_TILES) * BLOCK_N + tl.arange(0, BLOCK_N)
    m_n = o_n < K
    operand = d_dgates.dtype

    b_dw = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for i_chunk in range(tl.load(p_split + i_split), tl.load(p_split + i_split + 1)):
        p_chunk = p_chunks + i_chunk * FIELDS
        row, rows = tl.load(p_chunk), tl.load(p_chunk + 1)
        skip, length = tl.load(p_chunk + 2), tl.load(p_chunk + 3)
        in_prefixes = is_left & (tl.load(p_chunk + 4) != 0)
        p_where = p_chunk + tl.where(is_left, 5, 9)
        batch, step = tl.load(p_where), tl.load(p_where + 1)
        base, first = tl.load(p_where + 2), tl.load(p_where + 3)
        of_seed = tl.where(in_prefixes, prefix_rows, block_rows)
        p_z = tl.where(in_prefixes, p_prefixes, p_blocks) + i_seed.to(tl.int64) * of_seed * K
        for start in range(0, rows, BLOCK_K):
            # rows behind the end of a chunk are some other chunk's: for them z is zero
            b_g = d_dgates.load([i_seed * g_rows + row + start, i_m * BLOCK_M])
            o_row = start + tl.arange(0, BLOCK_K)
            m_row = o_row < rows
            o_batch, o_state = (skip + o_row) // length, (skip + o_row) % length
            o_z = o_batch * batch + tl.where(o_state == 0, first, base + o_state * step)
            p_tile = p_z + (o_z.to(tl.int64) * K)[:, None] + o_n[None, :]
            b_z = tl.load(p_tile, m_row[:, None] & m_n[None, :], 0.0).to(operand)
            b_dw = tl.dot(b_g.T, b_z, b_dw, input_precision=PRECISION)
    o_m = i_m * BLOCK_M + tl.arange(0, BLOCK_M)
    o_column = tl.where(is_left, o_n, o_n + K)
    o_part = ((i_seed * splits + i_split).to(tl.int64) * C + o_m)[:, None] * (STATES * K)
    m = (o_m < C)[:, None] & m_n[None, :]
    tl.store(p_dweight + o_part + o_column[None, :], b_dw, m)
