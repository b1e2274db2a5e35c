"""The gated block in Triton, forward and backward; `prlstm.kernels.gated` launches it.

Letters: S seeds, B batch, L states side by side, H hidden size, K size of one incoming h, n
incoming states, G = n + 3 gates in the order f_1..f_n, i, o, u; a row is one (b, l).
Prefixes: p_ pointer, b_ block of values, i_ index of a program, o_ offsets, m_ mask.

h and c are strided (S, B, L, size) with contiguous last dimension; their strides come as tuples,
so that every second state is read where it stands. `gates` are the sums before sigmoid and tanh:
stored in half precision, those keep what the slope of a nearly shut or open gate depends on,
which the values after the sigmoid do not.
"""

import triton
import triton.language as tl

from prlstm.kernels.nonlinear import sigmoid, sigmoid_and_slope, tanh, tanh_and_slope

# whether the kernels below run on the CPU, one program after the other
INTERPRETED: bool = triton.knobs.runtime.interpret


@triton.jit
def _offsets(i_seed, o_row, length, strides):
    """Where rows begin in a strided (S, B, L, size)."""
    o_batch, o_state = o_row // length, o_row % length
    return (
        i_seed.to(tl.int64) * strides[0]
        + o_batch.to(tl.int64) * strides[1]
        + o_state.to(tl.int64) * strides[2]
    )


@triton.jit
def _four_parts(b_four, BLOCK_M: tl.constexpr, BLOCK_H: tl.constexpr):
    """(BLOCK_M, 4 BLOCK_H) as four of (BLOCK_M, BLOCK_H): other names for the same registers."""
    b_even, b_odd = tl.split(tl.permute(tl.reshape(b_four, (BLOCK_M, 2, 2, BLOCK_H)), (0, 3, 1, 2)))
    b_0, b_2 = tl.split(b_even)
    b_1, b_3 = tl.split(b_odd)
    return b_0, b_1, b_2, b_3


@triton.jit
def _gate_sum(b_sum, p_bias, o_h, m_h, GATE: tl.constexpr, H: tl.constexpr):
    if p_bias is None:
        return b_sum
    else:
        return b_sum + tl.load(p_bias + GATE * H + o_h, m_h, 0.0).to(tl.float32)[None, :]


@triton.jit
def _keep(p_gates, o_gates, m, b_sum, GATE: tl.constexpr, H: tl.constexpr):
    if p_gates is not None:
        tl.store(p_gates + o_gates + GATE * H, b_sum.to(p_gates.dtype.element_ty), m)


@triton.jit(do_not_specialize=["rows", "length"])
def gated_forward(
    p_h_left,
    h_left_strides,
    p_h_right,
    h_right_strides,
    p_c_left,
    c_left_strides,
    p_c_right,
    c_right_strides,
    p_weight,
    p_bias,
    p_h,
    h_strides,
    p_c,
    c_strides,
    p_gates,
    rows,
    length,
    N: tl.constexpr,
    H: tl.constexpr,
    K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    PRECISION: tl.constexpr,
    FAST: tl.constexpr,
):
    """One tile of h and c. Grid: (tiles of rows times tiles of features, S).

    What there is none of comes as None: the bias, `gates` where no gradient is wanted, the right
    state for n < 2, c for n = 0. The products are computed in the type of the weight
    (S, G H, max(n, 1) K), in `PRECISION` where that is float32.
    """
    STATES: tl.constexpr = max(N, 1)
    K_TILES: tl.constexpr = (K + BLOCK_K - 1) // BLOCK_K
    H_TILES: tl.constexpr = (H + BLOCK_H - 1) // BLOCK_H
    operand = p_weight.dtype.element_ty

    # neighbouring programs share weights and rows while these are in the cache
    i_program, i_seed = tl.program_id(0), tl.program_id(1)
    i_group = i_program // (GROUP_M * H_TILES)
    first = i_group * GROUP_M
    height = tl.minimum(tl.cdiv(rows, BLOCK_M) - first, GROUP_M)
    i_inside = i_program % (GROUP_M * H_TILES)
    o_row = (first + i_inside % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    o_h = (i_inside // height) * BLOCK_H + tl.arange(0, BLOCK_H)
    m_row, m_h = o_row < rows, o_h < H

    o_left = _offsets(i_seed, o_row, length, h_left_strides)
    if N == 2:
        o_right = _offsets(i_seed, o_row, length, h_right_strides)
    o_k = tl.arange(0, BLOCK_K)
    p_weight += i_seed.to(tl.int64) * ((N + 3) * H * STATES * K)
    p_w = p_weight + o_h[None, :] * (STATES * K) + o_k[:, None]
    GATE: tl.constexpr = H * STATES * K
    # the first four gates side by side: one wide product reads the rows once for all of them
    o_four = tl.arange(0, 4 * BLOCK_H)
    o_feature = (i_inside // height) * BLOCK_H + o_four % BLOCK_H
    m_four = o_feature < H
    o_four = (o_four // BLOCK_H) * H + o_feature
    p_four = p_weight + o_four[None, :] * (STATES * K) + o_k[:, None]

    b_four = tl.zeros((BLOCK_M, 4 * BLOCK_H), tl.float32)
    b_i = tl.zeros((BLOCK_M, BLOCK_H), tl.float32)
    b_o = tl.zeros((BLOCK_M, BLOCK_H), tl.float32)
    b_u = tl.zeros((BLOCK_M, BLOCK_H), tl.float32)
    # one loop over both states, so that loads run ahead across the seam
    for tile in range(STATES * K_TILES):
        if N == 2:
            is_left = tile < K_TILES
            p_z = tl.where(is_left, p_h_left, p_h_right)
            o_z = tl.where(is_left, o_left, o_right)
            start = tl.where(is_left, tile, tile - K_TILES) * BLOCK_K
            column = tl.where(is_left, start, start + K)
        else:
            p_z, o_z, start, column = p_h_left, o_left, tile * BLOCK_K, tile * BLOCK_K
        if K % BLOCK_K == 0:
            m_z, m_w, m_w4 = m_row[:, None], m_h[None, :], m_four[None, :]
        else:
            m_k = start + o_k < K
            m_z, m_w = m_row[:, None] & m_k[None, :], m_k[:, None] & m_h[None, :]
            m_w4 = m_k[:, None] & m_four[None, :]
        b_z = tl.load(p_z + o_z[:, None] + (start + o_k)[None, :], m_z, 0.0).to(operand)
        p = p_w + column
        if N > 0:
            b_w = tl.load(p_four + column, m_w4, 0.0)
            b_four = tl.dot(b_z, b_w, b_four, input_precision=PRECISION)
        else:
            b_i = tl.dot(b_z, tl.load(p, m_w, 0.0), b_i, input_precision=PRECISION)
            b_o = tl.dot(b_z, tl.load(p + GATE, m_w, 0.0), b_o, input_precision=PRECISION)
        if N != 1:
            b_w = tl.load(p + (N + 2) * GATE, m_w, 0.0)
            b_u = tl.dot(b_z, b_w, b_u, input_precision=PRECISION)
    if N == 1:
        b_f1, b_i, b_o, b_u = _four_parts(b_four, BLOCK_M, BLOCK_H)
    if N == 2:
        b_f1, b_f2, b_i, b_o = _four_parts(b_four, BLOCK_M, BLOCK_H)

    m = m_row[:, None] & m_h[None, :]
    if p_bias is not None:
        p_bias += i_seed * ((N + 3) * H)
    o_gates = (i_seed.to(tl.int64) * rows + o_row)[:, None] * ((N + 3) * H) + o_h[None, :]
    b_i = _gate_sum(b_i, p_bias, o_h, m_h, N, H)
    b_u = _gate_sum(b_u, p_bias, o_h, m_h, N + 2, H)
    _keep(p_gates, o_gates, m, b_i, N, H)
    _keep(p_gates, o_gates, m, b_u, N + 2, H)
    b_c = sigmoid(b_i, FAST) * tanh(b_u, FAST)
    if N > 0:
        b_f1 = _gate_sum(b_f1, p_bias, o_h, m_h, 0, H)
        _keep(p_gates, o_gates, m, b_f1, 0, H)
        o_in = _offsets(i_seed, o_row, length, c_left_strides)[:, None] + o_h[None, :]
        b_c += sigmoid(b_f1, FAST) * tl.load(p_c_left + o_in, m, 0.0)
    if N > 1:
        b_f2 = _gate_sum(b_f2, p_bias, o_h, m_h, 1, H)
        _keep(p_gates, o_gates, m, b_f2, 1, H)
        o_in = _offsets(i_seed, o_row, length, c_right_strides)[:, None] + o_h[None, :]
        b_c += sigmoid(b_f2, FAST) * tl.load(p_c_right + o_in, m, 0.0)
    o_out = _offsets(i_seed, o_row, length, c_strides)[:, None] + o_h[None, :]
    tl.store(p_c + o_out, b_c, m)
    b_o = _gate_sum(b_o, p_bias, o_h, m_h, N + 1, H)
    _keep(p_gates, o_gates, m, b_o, N + 1, H)
    b_h = sigmoid(b_o, FAST) * tanh(b_c, FAST)
    o_out = _offsets(i_seed, o_row, length, h_strides)[:, None] + o_h[None, :]
    tl.store(p_h + o_out, b_h.to(p_h.dtype.element_ty), m)


@triton.jit
def _pass_back(
    p_c_in,
    strides,
    p_dc_in,
    p_gates,
    p_dgates,
    o_gates,
    o_dense,
    i_seed,
    o_row,
    length,
    o_h,
    m,
    b_dc,
    GATE: tl.constexpr,
    H: tl.constexpr,
):
    """The gradients of one incoming c and of its forget gate."""
    b_f, b_slope = sigmoid_and_slope(tl.load(p_gates + o_gates + GATE * H, m, 0.0).to(tl.float32))
    o_in = _offsets(i_seed, o_row, length, strides)[:, None] + o_h[None, :]
    b_df = b_dc * tl.load(p_c_in + o_in, m, 0.0) * b_slope
    tl.store(p_dgates + o_gates + GATE * H, b_df.to(p_dgates.dtype.element_ty), m)
    tl.store(p_dc_in + o_dense, b_dc * b_f, m)


@triton.jit(do_not_specialize=["rows", "length"])
def gated_backward(
    p_gates,
    p_c_left,
    c_left_strides,
    p_c_right,
    c_right_strides,
    p_c,
    c_strides,
    p_dh,
    dh_strides,
    p_dc,
    dc_strides,
    p_dgates,
    p_dc_left,
    p_dc_right,
    rows,
    length,
    N: tl.constexpr,
    H: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_H: tl.constexpr,
):
    """One tile of the gradients of the gates' sums and of the incoming c; the rest is products.

    Grid: (tiles of rows, tiles of features, S). A gradient that nobody asked for comes as None.
    `gates`, `dgates` (S, B L, G H), `dc_left` and `dc_right` (S, B L, H) are contiguous.
    """
    i_seed = tl.program_id(2)
    o_row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    o_h = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    m = (o_row < rows)[:, None] & (o_h < H)[None, :]
    o_dense = (i_seed.to(tl.int64) * rows + o_row)[:, None] * H + o_h[None, :]
    o_gates = (i_seed.to(tl.int64) * rows + o_row)[:, None] * ((N + 3) * H) + o_h[None, :]
    kind = p_dgates.dtype.element_ty

    b_dc = tl.zeros((BLOCK_M, BLOCK_H), tl.float32)
    if p_dc is not None:
        o_in = _offsets(i_seed, o_row, length, dc_strides)[:, None] + o_h[None, :]
        b_dc += tl.load(p_dc + o_in, m, 0.0).to(tl.float32)
    p_do = p_dgates + o_gates + (N + 1) * H
    if p_dh is not None:
        o_in = _offsets(i_seed, o_row, length, dh_strides)[:, None] + o_h[None, :]
        b_dh = tl.load(p_dh + o_in, m, 0.0).to(tl.float32)
        o_in = _offsets(i_seed, o_row, length, c_strides)[:, None] + o_h[None, :]
        b_t, b_t_slope = tanh_and_slope(tl.load(p_c + o_in, m, 0.0))
        b_o, b_slope = sigmoid_and_slope(
            tl.load(p_gates + o_gates + (N + 1) * H, m, 0.0).to(tl.float32)
        )
        tl.store(p_do, (b_dh * b_t * b_slope).to(kind), m)
        b_dc += b_dh * b_o * b_t_slope
    else:
        tl.store(p_do, tl.zeros((BLOCK_M, BLOCK_H), kind), m)

    b_i, b_i_slope = sigmoid_and_slope(tl.load(p_gates + o_gates + N * H, m, 0.0).to(tl.float32))
    b_u, b_u_slope = tanh_and_slope(tl.load(p_gates + o_gates + (N + 2) * H, m, 0.0).to(tl.float32))
    tl.store(p_dgates + o_gates + N * H, (b_dc * b_u * b_i_slope).to(kind), m)
    tl.store(p_dgates + o_gates + (N + 2) * H, (b_dc * b_i * b_u_slope).to(kind), m)
    if N > 0:
        _pass_back(
            p_c_left, c_left_strides, p_dc_left, p_gates, p_dgates, o_gates, o_dense,
            i_seed, o_row, length, o_h, m, b_dc, 0, H,
        )  # fmt: skip
    if N > 1:
        _pass_back(
            p_c_right, c_right_strides, p_dc_right, p_gates, p_dgates, o_gates, o_dense,
            i_seed, o_row, length, o_h, m, b_dc, 1, H,
        )  # fmt: skip
