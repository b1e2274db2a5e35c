"""The backward pass of the gated block, in Triton: gradients of gates, inputs and weights.

Letters and prefixes as in `prlstm.kernels.block`; C is the number of columns of `dgates`, which
are ordered as the rows of the weights in tiles are.
"""

import triton
import triton.language as tl

from prlstm.kernels.block import place, tile_of
from prlstm.kernels.nonlinear import sigmoid_and_slope, tanh_and_slope


@triton.jit
def _put(p, o, b, m, ADD: tl.constexpr):
    """Put values there, or add them to what stands there."""
    if ADD:
        b += tl.load(p + o, m, 0.0).to(tl.float32)
    tl.store(p + o, b.to(p.dtype.element_ty), m)


@triton.jit(
    do_not_specialize=[
        "g_row", "g_rows", "d_rows", "part", "parts", "rows", "length",
    ]
)  # fmt: skip
def gated_backward(
    p_gates,
    p_dgates,
    g_row,
    g_rows,
    d_rows,
    p_c_left,
    c_left,
    p_c_right,
    c_right,
    p_dh,
    dh_out,
    p_dc,
    dc_out,
    p_dc_left,
    dc_left,
    p_dc_right,
    dc_right,
    p_dbias,
    part,
    parts,
    rows,
    length,
    N: tl.constexpr,
    H: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_H: tl.constexpr,
    ROUNDS: tl.constexpr,
    FAST: tl.constexpr,
    ADD_LEFT: tl.constexpr,
    ADD_RIGHT: tl.constexpr,
    LINEAR: tl.constexpr,
    ALIGNED: tl.constexpr,
):
    """Some tiles of the gradients of the gates' sums and of the incoming c; the rest is products.

    Grid: (ROUNDS tiles of rows, tiles of features, S). A gradient that nobody asked for comes as
    None. `dgates` stands as `gates` does, but for the rows of a seed, and is zero for features
    that are not there. What comes
    for an incoming c is added to what stands there, or put there. The sums of `dgates` over the
    rows of a program are a row of `dbias` (S, parts of all calls, C), from `part` on.
    """
    G: tl.constexpr = N + 3
    C: tl.constexpr = (H + BLOCK_H - 1) // BLOCK_H * G * BLOCK_H
    i_h, i_seed = tl.program_id(1), tl.program_id(2)
    o_tile = tl.arange(0, BLOCK_H)
    o_h = i_h * BLOCK_H + o_tile
    kind = p_dgates.dtype.element_ty
    b_sum_f1 = tl.zeros((BLOCK_M, BLOCK_H), tl.float32)
    b_sum_f2 = tl.zeros((BLOCK_M, BLOCK_H), tl.float32)
    b_sum_i = tl.zeros((BLOCK_M, BLOCK_H), tl.float32)
    b_sum_o = tl.zeros((BLOCK_M, BLOCK_H), tl.float32)
    b_sum_u = tl.zeros((BLOCK_M, BLOCK_H), tl.float32)
    for i_round in range(ROUNDS):
        o_row = (tl.program_id(0) * ROUNDS + i_round) * BLOCK_M + tl.arange(0, BLOCK_M)
        m_row = (o_row < rows)[:, None]
        m = m_row & (o_h < H)[None, :]
        o_in = (i_seed.to(tl.int64) * g_rows + g_row + o_row) * C + i_h * (G * BLOCK_H)
        p_in = p_gates + o_in[:, None] + o_tile[None, :]
        o_out = (i_seed.to(tl.int64) * d_rows + g_row + o_row) * C + i_h * (G * BLOCK_H)
        p_out = p_dgates + o_out[:, None] + o_tile[None, :]

        b_i, b_di = sigmoid_and_slope(tl.load(p_in + N * BLOCK_H, m, 0.0).to(tl.float32), FAST)
        b_u, b_du = tanh_and_slope(tl.load(p_in + (N + 2) * BLOCK_H, m, 0.0).to(tl.float32), FAST)
        b_c = b_i * b_u
        if N > 0:
            b_f1, b_df1 = sigmoid_and_slope(tl.load(p_in, m, 0.0).to(tl.float32), FAST)
            o_in = place(i_seed, o_row, length, c_left, LINEAR, ALIGNED)[:, None] + o_h[None, :]
            b_c1 = tl.load(p_c_left + o_in, m, 0.0)
            b_c += b_f1 * b_c1
        if N > 1:
            b_f2, b_df2 = sigmoid_and_slope(tl.load(p_in + BLOCK_H, m, 0.0).to(tl.float32), FAST)
            o_in = place(i_seed, o_row, length, c_right, LINEAR, ALIGNED)[:, None] + o_h[None, :]
            b_c2 = tl.load(p_c_right + o_in, m, 0.0)
            b_c += b_f2 * b_c2

        b_dc = tl.zeros((BLOCK_M, BLOCK_H), tl.float32)
        if p_dc is not None:
            o_out = place(i_seed, o_row, length, dc_out, LINEAR, ALIGNED)[:, None] + o_h[None, :]
            b_dc += tl.load(p_dc + o_out, m, 0.0).to(tl.float32)
        b_do = tl.zeros((BLOCK_M, BLOCK_H), tl.float32)
        if p_dh is not None:
            o_out = place(i_seed, o_row, length, dh_out, LINEAR, ALIGNED)[:, None] + o_h[None, :]
            b_dh = tl.load(p_dh + o_out, m, 0.0).to(tl.float32)
            # c is what the forward pass made of the same numbers: not worth reading
            b_t, b_dt = tanh_and_slope(b_c, FAST)
            b_o, b_slope = sigmoid_and_slope(
                tl.load(p_in + (N + 1) * BLOCK_H, m, 0.0).to(tl.float32), FAST
            )
            b_do = b_dh * b_t * b_slope
            b_dc += b_dh * b_o * b_dt
        tl.store(p_out + (N + 1) * BLOCK_H, b_do.to(kind), m_row)
        b_sum_o += b_do
        b_di *= b_dc * b_u
        tl.store(p_out + N * BLOCK_H, b_di.to(kind), m_row)
        b_sum_i += b_di
        b_du *= b_dc * b_i
        tl.store(p_out + (N + 2) * BLOCK_H, b_du.to(kind), m_row)
        b_sum_u += b_du
        if N > 0:
            b_df1 *= b_dc * b_c1
            tl.store(p_out, b_df1.to(kind), m_row)
            b_sum_f1 += b_df1
            o_in = place(i_seed, o_row, length, dc_left, LINEAR, ALIGNED)[:, None] + o_h[None, :]
            _put(p_dc_left, o_in, b_dc * b_f1, m, ADD_LEFT)
        if N > 1:
            b_df2 *= b_dc * b_c2
            tl.store(p_out + BLOCK_H, b_df2.to(kind), m_row)
            b_sum_f2 += b_df2
            o_in = place(i_seed, o_row, length, dc_right, LINEAR, ALIGNED)[:, None] + o_h[None, :]
            _put(p_dc_right, o_in, b_dc * b_f2, m, ADD_RIGHT)

    if p_dbias is not None:
        i_part = i_seed.to(tl.int64) * parts + part + tl.program_id(0)
        p_sum = p_dbias + i_part * C + i_h * (G * BLOCK_H) + o_tile
        tl.store(p_sum + N * BLOCK_H, tl.sum(b_sum_i, 0))
        tl.store(p_sum + (N + 1) * BLOCK_H, tl.sum(b_sum_o, 0))
        tl.store(p_sum + (N + 2) * BLOCK_H, tl.sum(b_sum_u, 0))
        if N > 0:
            tl.store(p_sum, tl.sum(b_sum_f1, 0))
        if N > 1:
            tl.store(p_sum + BLOCK_H, tl.sum(b_sum_f2, 0))


@triton.jit(do_not_specialize=["g_row", "g_rows", "rows", "length"])
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
            # rows behind the end of a chunk are another chunk's of this seed: for them z is zero
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
