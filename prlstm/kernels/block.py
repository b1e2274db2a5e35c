"""The gated block in Triton, forward; `prlstm.kernels.launch` launches it.

Letters: S seeds, B batch, L states side by side, H features of a state in memory, K those of one
incoming h, n incoming states, G = n + 3 gates in the order f_1..f_n, i, o, u; a row is one (b, l).
Prefixes: p_ pointer, d_ descriptor of a tensor, b_ block of values, i_ index of a program,
o_ offsets, m_ mask.

Where the states of an array stand is told by five numbers, see `place`: so every second state,
or every one of a level of the tree, is read and written where it is.

Weights come in tiles: for each BLOCK_H features the rows of all G gates one after the other, so
that the first four gates are one wide product. `gates` (S, rows of all calls, C) are the sums
before sigmoid and tanh, in the same order: stored in half precision, those keep what the slope of
a nearly shut or open gate depends on, which the values after the sigmoid do not.
"""

import triton
import triton.language as tl

from prlstm.kernels.nonlinear import sigmoid, tanh

# whether the kernels below run on the CPU, one program after the other
INTERPRETED: bool = triton.knobs.runtime.interpret


@triton.jit
def place(i_seed, o_row, length, where, LINEAR: tl.constexpr, ALIGNED: tl.constexpr):
    """Where the states of rows begin.

    `where` holds the strides of seed, batch and state, then the place of a state 0 if strides
    counted from there, and its true place: the first may stand elsewhere. Rows of a LINEAR array
    follow one another at the stride of a state.
    """
    if LINEAR:
        o_state = where[3] + o_row.to(tl.int64) * where[2]
    else:
        o_batch, o_l = o_row // length, o_row % length
        o_state = tl.where(o_l == 0, where[4], where[3] + o_l.to(tl.int64) * where[2])
        o_state += o_batch.to(tl.int64) * where[1]
    o_state += i_seed.to(tl.int64) * where[0]
    return tl.multiple_of(o_state, 16) if ALIGNED else o_state


@triton.jit
def tile_of(rows, BLOCK_M: tl.constexpr, TILES: tl.constexpr, GROUP_M: tl.constexpr):
    """Which tile of rows, and of columns.

    Neighbouring programs share both while these are in the cache.
    """
    i_program = tl.program_id(0)
    first = i_program // (GROUP_M * TILES) * GROUP_M
    height = tl.minimum(tl.cdiv(rows, BLOCK_M) - first, GROUP_M)
    i_inside = i_program % (GROUP_M * TILES)
    return first + i_inside % height, i_inside // height


@triton.jit
def _four_parts(b_four, BLOCK_M: tl.constexpr, BLOCK_H: tl.constexpr):
    """(BLOCK_M, 4 BLOCK_H) as four of (BLOCK_M, BLOCK_H): other names for the same registers."""
    b_even, b_odd = tl.split(tl.permute(tl.reshape(b_four, (BLOCK_M, 2, 2, BLOCK_H)), (0, 3, 1, 2)))
    b_0, b_2 = tl.split(b_even)
    b_1, b_3 = tl.split(b_odd)
    return b_0, b_1, b_2, b_3


@triton.jit
def _gate_sum(
    b_sum, p_bias, d_gates, row, column, p_gates, m, GATE: tl.constexpr, BLOCK_H: tl.constexpr
):
    """The whole sum of one gate, kept if there is room for it."""
    if p_bias is not None:
        b_sum += tl.load(p_bias + GATE * BLOCK_H).to(tl.float32)[None, :]
    if d_gates is not None:
        d_gates.store([row, column + GATE * BLOCK_H], b_sum.to(d_gates.dtype))
    elif p_gates is not None:
        tl.store(p_gates + GATE * BLOCK_H, b_sum.to(p_gates.dtype.scalar.element_ty), m)
    return b_sum


@triton.jit
def _incoming(
    d_c,
    p_c,
    c,
    o_place,
    i_seed,
    i_m,
    i_h,
    o_row,
    length,
    o_h,
    m,
    STATE: tl.constexpr,
    H: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_H: tl.constexpr,
    LINEAR: tl.constexpr,
    ALIGNED: tl.constexpr,
):
    """A tile of one incoming c."""
    if d_c is not None:
        return d_c.load([i_m * BLOCK_M, STATE * H + i_h * BLOCK_H])
    else:
        if o_place is not None and STATE == 0:
            o_in = place(i_seed, o_place, length, c, True, ALIGNED)
        else:
            o_in = place(i_seed, o_row, length, c, LINEAR, ALIGNED)
        return tl.load(p_c + o_in[:, None] + o_h[None, :], m, 0.0)


@triton.jit(
    do_not_specialize=[
        "z_rows", "counted", "g_row", "g_rows", "rows", "pairs", "length",
    ]
)  # fmt: skip
def gated_forward(
    d_z,
    z_rows,
    p_h_left,
    h_left,
    p_h_right,
    h_right,
    d_c,
    p_c_left,
    c_left,
    p_c_right,
    c_right,
    p_counts,
    counted,
    p_places,
    d_four,
    d_one,
    p_bias,
    d_h_out,
    p_h,
    h_out,
    d_c_out,
    p_c,
    c_out,
    d_gates,
    p_gates,
    g_row,
    g_rows,
    rows,
    pairs,
    length,
    N: tl.constexpr,
    H: tl.constexpr,
    K: tl.constexpr,
    SPACING: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    PRECISION: tl.constexpr,
    FAST: tl.constexpr,
    LINEAR: tl.constexpr,
    ALIGNED: tl.constexpr,
    AHEAD: tl.constexpr,
):
    """One tile of h and c. Grid: (tiles of rows times tiles of features, S).

    What there is none of comes as None: the bias, `gates` where no gradient is wanted, the right
    state for n < 2, c for n = 0. With `d_z` the incoming h of a row stand side by side, `z_rows`
    rows for each seed; else they are read through a pointer for each. With `d_c` the incoming c
    stand so too. With AHEAD they are read before the products, not after them. With `d_h_out` and
    `d_c_out` the results are one row after the other, with `d_gates` the gates are.

    With `p_counts` the number of rows stands there, at `counted`, and the grid is that of the most
    there may be. With `p_places` the left state of a row, or its token, is where that says; a place
    below 0 is none, and what is computed there means nothing.

    Of every `pairs` rows only the first `length` are states, the others are not written. Products
    are computed in the type of the weight, in `PRECISION` where that is float32; it has SPACING
    columns for each incoming state.
    """
    G: tl.constexpr = N + 3
    STATES: tl.constexpr = max(N, 1)
    K_TILES: tl.constexpr = (K + BLOCK_K - 1) // BLOCK_K
    H_TILES: tl.constexpr = (H + BLOCK_H - 1) // BLOCK_H
    operand = d_one.dtype

    i_seed = tl.program_id(1)
    if p_counts is not None:
        rows = tl.load(p_counts + counted)
        if tl.program_id(0) >= tl.cdiv(rows, BLOCK_M) * H_TILES:
            return
    i_m, i_h = tile_of(rows, BLOCK_M, H_TILES, GROUP_M)
    o_row = i_m * BLOCK_M + tl.arange(0, BLOCK_M)
    m_row = o_row < rows
    if not LINEAR:
        m_row = m_row & (o_row % pairs < length)
    # what is behind the end reads the last row, and is not written
    o_row = tl.minimum(o_row, rows - 1)
    o_place = None
    if p_places is not None:
        o_place = tl.maximum(tl.load(p_places + o_row), 0)
    if d_z is None:
        if p_places is not None:
            o_left = place(i_seed, o_place, pairs, h_left, True, ALIGNED)
        else:
            o_left = place(i_seed, o_row, pairs, h_left, LINEAR, ALIGNED)
        if N == 2:
            o_right = place(i_seed, o_row, pairs, h_right, LINEAR, ALIGNED)
    o_tile = tl.arange(0, BLOCK_H)
    o_h = i_h * BLOCK_H + o_tile
    # features behind the end have gates too: those of zero weights
    m_gates = m_row[:, None]
    m = m_gates
    if H % BLOCK_H != 0:
        m = m & (o_h < H)[None, :]
    if AHEAD:
        if N > 0:
            b_c1 = _incoming(
                d_c, p_c_left, c_left, o_place, i_seed, i_m, i_h, o_row, pairs, o_h, m,
                0, H, BLOCK_M, BLOCK_H, LINEAR, ALIGNED,
            )  # fmt: skip
        if N > 1:
            b_c2 = _incoming(
                d_c, p_c_right, c_right, o_place, i_seed, i_m, i_h, o_row, pairs, o_h, m,
                1, H, BLOCK_M, BLOCK_H, LINEAR, ALIGNED,
            )  # fmt: skip

    o_k = tl.arange(0, BLOCK_K)
    w_row = (i_seed * H_TILES + i_h) * (G * BLOCK_H)
    b_four = tl.zeros((BLOCK_M, 4 * BLOCK_H), tl.float32)
    b_i = tl.zeros((BLOCK_M, BLOCK_H), tl.float32)
    b_o = tl.zeros((BLOCK_M, BLOCK_H), tl.float32)
    b_u = tl.zeros((BLOCK_M, BLOCK_H), tl.float32)
    # one loop over both states, so that loads run ahead across the seam
    TILES: tl.constexpr = (
        (STATES * K + BLOCK_K - 1) // BLOCK_K if d_z is not None else STATES * K_TILES
    )
    for tile in range(TILES):
        if d_z is not None:
            column = tile * BLOCK_K
            b_z = d_z.load([i_seed * z_rows + i_m * BLOCK_M, column]).to(operand)
        else:
            if N == 2:
                is_left = tile < K_TILES
                p_z = tl.where(is_left, p_h_left, p_h_right)
                o_z = tl.where(is_left, o_left, o_right)
                start = tl.where(is_left, tile, tile - K_TILES) * BLOCK_K
                column = tl.where(is_left, start, start + SPACING)
            else:
                p_z, o_z, start, column = p_h_left, o_left, tile * BLOCK_K, tile * BLOCK_K
            p_tile = p_z + o_z[:, None] + (start + o_k)[None, :]
            if K % BLOCK_K == 0:
                b_z = tl.load(p_tile).to(operand)
            else:
                b_z = tl.load(p_tile, (start + o_k < K)[None, :], 0.0).to(operand)
        if N > 0:
            b_w = d_four.load([w_row, column])
            b_four = tl.dot(b_z, b_w.T, b_four, input_precision=PRECISION)
        else:
            b_w = d_one.load([w_row, column])
            b_i = tl.dot(b_z, b_w.T, b_i, input_precision=PRECISION)
            b_w = d_one.load([w_row + BLOCK_H, column])
            b_o = tl.dot(b_z, b_w.T, b_o, input_precision=PRECISION)
        if N != 1:
            b_w = d_one.load([w_row + (N + 2) * BLOCK_H, column])
            b_u = tl.dot(b_z, b_w.T, b_u, input_precision=PRECISION)
    if N == 1:
        b_f1, b_i, b_o, b_u = _four_parts(b_four, BLOCK_M, BLOCK_H)
    if N == 2:
        b_f1, b_f2, b_i, b_o = _four_parts(b_four, BLOCK_M, BLOCK_H)

    row, column = i_m * BLOCK_M, i_h * (G * BLOCK_H)
    if p_bias is not None:
        p_bias += i_seed * (H_TILES * G * BLOCK_H) + column + o_tile
    if p_gates is not None:
        o_gate = o_row
        if not LINEAR:
            o_gate = o_row // pairs * length + o_row % pairs
        o_gate = (i_seed.to(tl.int64) * g_rows + g_row + o_gate) * (H_TILES * G * BLOCK_H)
        p_gates += (o_gate + column)[:, None] + o_tile[None, :]
    b_i = _gate_sum(b_i, p_bias, d_gates, row, column, p_gates, m_gates, N, BLOCK_H)
    b_u = _gate_sum(b_u, p_bias, d_gates, row, column, p_gates, m_gates, N + 2, BLOCK_H)
    b_c = sigmoid(b_i, FAST) * tanh(b_u, FAST)
    if N > 0:
        b_f1 = _gate_sum(b_f1, p_bias, d_gates, row, column, p_gates, m_gates, 0, BLOCK_H)
        if not AHEAD:
            b_c1 = _incoming(
                d_c, p_c_left, c_left, o_place, i_seed, i_m, i_h, o_row, pairs, o_h, m,
                0, H, BLOCK_M, BLOCK_H, LINEAR, ALIGNED,
            )  # fmt: skip
        b_c += sigmoid(b_f1, FAST) * b_c1
    if N > 1:
        b_f2 = _gate_sum(b_f2, p_bias, d_gates, row, column, p_gates, m_gates, 1, BLOCK_H)
        if not AHEAD:
            b_c2 = _incoming(
                d_c, p_c_right, c_right, o_place, i_seed, i_m, i_h, o_row, pairs, o_h, m,
                1, H, BLOCK_M, BLOCK_H, LINEAR, ALIGNED,
            )  # fmt: skip
        b_c += sigmoid(b_f2, FAST) * b_c2
    b_o = _gate_sum(b_o, p_bias, d_gates, row, column, p_gates, m_gates, N + 1, BLOCK_H)
    b_h = sigmoid(b_o, FAST) * tanh(b_c, FAST)
    if d_c_out is not None:
        d_c_out.store([i_m * BLOCK_M, i_h * BLOCK_H], b_c)
        d_h_out.store([i_m * BLOCK_M, i_h * BLOCK_H], b_h.to(d_h_out.dtype))
    else:
        o_out = place(i_seed, o_row, pairs, c_out, LINEAR, ALIGNED)[:, None] + o_h[None, :]
        tl.store(p_c + o_out, b_c, m)
        o_out = place(i_seed, o_row, pairs, h_out, LINEAR, ALIGNED)[:, None] + o_h[None, :]
        tl.store(p_h + o_out, b_h.to(p_h.dtype.element_ty), m)
