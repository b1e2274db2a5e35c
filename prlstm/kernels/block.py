"""The gated block in Triton, forward and backward; `prlstm.kernels.launch` launches it.

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

from prlstm.kernels.nonlinear import sigmoid, sigmoid_and_slope, tanh, tanh_and_slope

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
    """Which tile of rows, and of columns: neighbouring programs share both while these are in
    the cache."""
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
    b_sum, p_bias, o_tile, d_gates, row, column, p_gates, o_gates, m, GATE: tl.constexpr, BLOCK_H: tl.constexpr
):
    """The whole sum of one gate, kept if there is room for it."""
    if p_bias is not None:
        b_sum += tl.load(p_bias + GATE * BLOCK_H + o_tile).to(tl.float32)[None, :]
    if d_gates is not None:
        d_gates.store([row, column + GATE * BLOCK_H], b_sum.to(d_gates.dtype))
    elif p_gates is not None:
        tl.store(p_gates + o_gates + GATE * BLOCK_H, b_sum.to(p_gates.dtype.element_ty), m)
    return b_sum


@triton.jit
def _incoming(
    d_c,
    p_c,
    c,
    p_index,
    index,
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
        if p_index is not None:
            o_index = place(i_seed, o_row, length, index, LINEAR, False) + STATE
            o_in = tl.load(p_index + o_index).to(tl.int64) * c[2] + i_seed.to(tl.int64) * c[0]
            o_in = tl.multiple_of(o_in, 16) if ALIGNED else o_in
        else:
            o_in = place(i_seed, o_row, length, c, LINEAR, ALIGNED)
        return tl.load(p_c + o_in[:, None] + o_h[None, :], m, 0.0)


@triton.jit(
    do_not_specialize=[
        "z_rows", "h_left", "h_right", "c_left", "c_right", "index", "h_out", "c_out",
        "g_row", "g_rows", "rows", "pairs", "length",
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
    p_index,
    index,
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
    stand so too. With `p_index` they are looked up: those of a row are of two neighbours there. With
    AHEAD they are read before the products, not after them. With `d_h_out` and `d_c_out` the results are one row after the other.

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
    i_m, i_h = tile_of(rows, BLOCK_M, H_TILES, GROUP_M)
    o_row = i_m * BLOCK_M + tl.arange(0, BLOCK_M)
    m_row = o_row < rows
    if not LINEAR:
        m_row = m_row & (o_row % pairs < length)
    # what is behind the end reads the last row, and is not written
    o_row = tl.minimum(o_row, rows - 1)
    if d_z is None:
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
                d_c, p_c_left, c_left, p_index, index, i_seed, i_m, i_h, o_row, pairs, o_h, m,
                0, H, BLOCK_M, BLOCK_H, LINEAR, ALIGNED,
            )  # fmt: skip
        if N > 1:
            b_c2 = _incoming(
                d_c, p_c_right, c_right, p_index, index, i_seed, i_m, i_h, o_row, pairs, o_h, m,
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

    if p_bias is not None:
        p_bias += (i_seed * H_TILES + i_h) * (G * BLOCK_H)
    o_gates = None
    if p_gates is not None:
        o_gate = o_row
        if not LINEAR:
            o_gate = o_row // pairs * length + o_row % pairs
        o_gates = (i_seed.to(tl.int64) * g_rows + g_row + o_gate) * (H_TILES * G * BLOCK_H)
        o_gates = (o_gates + i_h * (G * BLOCK_H))[:, None] + o_tile[None, :]
    b_i = _gate_sum(b_i, p_bias, o_tile, d_gates, i_m * BLOCK_M, i_h * (G * BLOCK_H), p_gates, o_gates, m_gates, N, BLOCK_H)
    b_u = _gate_sum(b_u, p_bias, o_tile, d_gates, i_m * BLOCK_M, i_h * (G * BLOCK_H), p_gates, o_gates, m_gates, N + 2, BLOCK_H)
    b_c = sigmoid(b_i, FAST) * tanh(b_u, FAST)
    if N > 0:
        b_f1 = _gate_sum(b_f1, p_bias, o_tile, d_gates, i_m * BLOCK_M, i_h * (G * BLOCK_H), p_gates, o_gates, m_gates, 0, BLOCK_H)
        if not AHEAD:
            b_c1 = _incoming(
                d_c, p_c_left, c_left, p_index, index, i_seed, i_m, i_h, o_row, pairs, o_h, m,
                0, H, BLOCK_M, BLOCK_H, LINEAR, ALIGNED,
            )  # fmt: skip
        b_c += sigmoid(b_f1, FAST) * b_c1
    if N > 1:
        b_f2 = _gate_sum(b_f2, p_bias, o_tile, d_gates, i_m * BLOCK_M, i_h * (G * BLOCK_H), p_gates, o_gates, m_gates, 1, BLOCK_H)
        if not AHEAD:
            b_c2 = _incoming(
                d_c, p_c_right, c_right, p_index, index, i_seed, i_m, i_h, o_row, pairs, o_h, m,
                1, H, BLOCK_M, BLOCK_H, LINEAR, ALIGNED,
            )  # fmt: skip
        b_c += sigmoid(b_f2, FAST) * b_c2
    b_o = _gate_sum(b_o, p_bias, o_tile, d_gates, i_m * BLOCK_M, i_h * (G * BLOCK_H), p_gates, o_gates, m_gates, N + 1, BLOCK_H)
    b_h = sigmoid(b_o, FAST) * tanh(b_c, FAST)
    if d_c_out is not None:
        d_c_out.store([i_m * BLOCK_M, i_h * BLOCK_H], b_c)
        d_h_out.store([i_m * BLOCK_M, i_h * BLOCK_H], b_h.to(d_h_out.dtype))
    else:
        o_out = place(i_seed, o_row, pairs, c_out, LINEAR, ALIGNED)[:, None] + o_h[None, :]
        tl.store(p_c + o_out, b_c, m)
        o_out = place(i_seed, o_row, pairs, h_out, LINEAR, ALIGNED)[:, None] + o_h[None, :]
        tl.store(p_h + o_out, b_h.to(p_h.dtype.element_ty), m)


@triton.jit
def _put(p, o, b, m, ADD: tl.constexpr):
    """Put values there, or add them to what stands there."""
    if ADD:
        b += tl.load(p + o, m, 0.0).to(tl.float32)
    tl.store(p + o, b.to(p.dtype.element_ty), m)


@triton.jit(
    do_not_specialize=[
        "g_row", "g_rows", "c_left", "c_right", "dh_out", "dc_out", "dc_left", "dc_right",
        "part", "parts", "rows", "length",
    ]
)  # fmt: skip
def gated_backward(
    p_gates,
    p_dgates,
    g_row,
    g_rows,
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
    None. `dgates` stands as `gates` does, and is zero for features that are not there. What comes
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
        o_gates = (i_seed.to(tl.int64) * g_rows + g_row + o_row) * C + i_h * (G * BLOCK_H)
        o_gates = o_gates[:, None] + o_tile[None, :]
        p_in, p_out = p_gates + o_gates, p_dgates + o_gates

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
