"""Tables in Triton: numbers of their entries, entries looked up and merged, their gradients.

Letters and prefixes as in `prlstm.kernels.block`; tables are states somewhere in (S, states, H).
"""

import triton
import triton.language as tl

from prlstm.kernels.block import place
from prlstm.kernels.nonlinear import sigmoid, tanh


@triton.jit(
    do_not_specialize=[
        "ids_seed", "ids_batch", "letters", "first", "step", "size", "rows", "length",
    ]
)  # fmt: skip
def spell(
    p_ids,
    ids_seed,
    ids_batch,
    p_firsts,
    letters,
    first,
    step,
    size,
    p_codes,
    rows,
    length,
    BLOCK: tl.constexpr,
):
    """The numbers of the blocks `first, first + step, ...` of ids: (S, B, length).

    A block is `size` ids: letters, read as digits, then something else; `p_firsts` tells the
    number of the first block for each number of letters. Grid: (tiles of rows, S).
    """
    i_seed = tl.program_id(1)
    o_row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o_row < rows
    o_batch, o_l = o_row // length, o_row % length
    p_block = p_ids + i_seed.to(tl.int64) * ids_seed + o_batch.to(tl.int64) * ids_batch
    p_block += (first + o_l * step).to(tl.int64) * size
    b_value = tl.zeros((BLOCK,), tl.int32)
    b_fill = tl.zeros((BLOCK,), tl.int32)
    for i in range(size):
        b_id = tl.load(p_block + i, m, 0).to(tl.int32)
        is_letter = (b_id >= 0) & (b_id < letters)
        b_value = tl.where(is_letter, b_value * letters + b_id, b_value)
        b_fill += is_letter.to(tl.int32)
    b_code = tl.load(p_firsts + b_fill, m, 0) + b_value
    tl.store(p_codes + i_seed.to(tl.int64) * rows + o_row, b_code, m)


@triton.jit(do_not_specialize=["states", "table", "codes_seed", "rows", "length"])
def look_up(
    p_h,
    p_c,
    states,
    table,
    p_codes,
    codes_seed,
    p_h_out,
    h_out,
    p_c_out,
    c_out,
    rows,
    length,
    H: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_H: tl.constexpr,
    ALIGNED: tl.constexpr,
):
    """Entries of a table at codes (S, rows), h and c of each.

    The table begins at state `table` of `states` for each seed. Grid: (tiles of rows, S).
    """
    i_seed = tl.program_id(1)
    o_row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    m_row = o_row < rows
    o_h = tl.arange(0, BLOCK_H)
    m = m_row[:, None] & (o_h < H)[None, :]
    b_code = tl.load(p_codes + i_seed.to(tl.int64) * codes_seed + o_row, m_row, 0)
    o_entry = (i_seed.to(tl.int64) * states + table + b_code) * H
    o_in = o_entry[:, None] + o_h[None, :]
    o_out = place(i_seed, o_row, length, h_out, False, ALIGNED)[:, None] + o_h[None, :]
    tl.store(p_h_out + o_out, tl.load(p_h + o_in, m, 0.0), m)
    o_out = place(i_seed, o_row, length, c_out, False, ALIGNED)[:, None] + o_h[None, :]
    tl.store(p_c_out + o_out, tl.load(p_c + o_in, m, 0.0), m)


@triton.jit
def _looked_up_sum(p_left, p_right, GATE: tl.constexpr, BLOCK_H: tl.constexpr):
    """The whole sum of one gate: what the left state gives, and the right one."""
    return tl.load(p_left + GATE * BLOCK_H) + tl.load(p_right + GATE * BLOCK_H)


@triton.jit(
    do_not_specialize=[
        "entries", "states", "table", "codes_seed", "codes_batch", "rows", "length",
    ]
)  # fmt: skip
def merge_entries(
    p_sums,
    entries,
    p_c,
    states,
    table,
    p_codes,
    codes_seed,
    codes_batch,
    p_h_out,
    h_out,
    p_c_out,
    c_out,
    rows,
    length,
    H: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_H: tl.constexpr,
    FAST: tl.constexpr,
    ALIGNED: tl.constexpr,
):
    """Compositions of two neighbouring entries of a table, whose products are known.

    `sums` (S, entries, 2, C) are what each entry gives to the gates as a left state, with the bias,
    and as a right one; c are those of the table. Grid: (tiles of rows, S).

    Every multiprocessor has a small table in its first-level cache: plain loads, no copies ahead.
    """
    TILES: tl.constexpr = (H + BLOCK_H - 1) // BLOCK_H
    C: tl.constexpr = TILES * 5 * BLOCK_H
    i_seed = tl.program_id(1)
    o_row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    m_row = (o_row < rows)[:, None]
    # what is behind the end reads the last row, and is not written
    o_row = tl.minimum(o_row, rows - 1)
    p_codes += i_seed.to(tl.int64) * codes_seed
    p_codes += (o_row // length).to(tl.int64) * codes_batch + o_row % length * 2
    b_left, b_right = tl.load(p_codes).to(tl.int64), tl.load(p_codes + 1).to(tl.int64)
    first = i_seed.to(tl.int64) * entries
    p_left = p_sums + ((first + b_left) * (2 * C))[:, None]
    p_right = p_sums + ((first + b_right) * (2 * C) + C)[:, None]
    first = i_seed.to(tl.int64) * states + table
    p_c1 = p_c + ((first + b_left) * H)[:, None]
    p_c2 = p_c + ((first + b_right) * H)[:, None]
    p_h_out += place(i_seed, o_row, length, h_out, False, ALIGNED)[:, None]
    p_c_out += place(i_seed, o_row, length, c_out, False, ALIGNED)[:, None]
    # of each row four features a thread, which are 16 bytes of float32: more would leave gaps
    # between what neighbouring threads read
    o_tile = tl.max_contiguous(tl.arange(0, BLOCK_H), 4)
    for tile in range(TILES):
        o_h = (tile * BLOCK_H + o_tile)[None, :]
        m = m_row
        if H % BLOCK_H != 0:
            m = m & (o_h < H)
        column = (tile * (5 * BLOCK_H) + o_tile)[None, :]
        p_l, p_r = p_left + column, p_right + column
        b_c = sigmoid(_looked_up_sum(p_l, p_r, 0, BLOCK_H), FAST) * tl.load(p_c1 + o_h, m, 0.0)
        b_c += sigmoid(_looked_up_sum(p_l, p_r, 1, BLOCK_H), FAST) * tl.load(p_c2 + o_h, m, 0.0)
        b_i = sigmoid(_looked_up_sum(p_l, p_r, 2, BLOCK_H), FAST)
        b_c += b_i * tanh(_looked_up_sum(p_l, p_r, 4, BLOCK_H), FAST)
        b_h = sigmoid(_looked_up_sum(p_l, p_r, 3, BLOCK_H), FAST) * tanh(b_c, FAST)
        tl.store(p_c_out + o_h, b_c, m)
        tl.store(p_h_out + o_h, b_h.to(p_h_out.dtype.scalar.element_ty), m)


@triton.jit(
    do_not_specialize=["codes_seed", "states", "table", "entries", "rows", "length", "each"]
)
def sum_entries(
    p_codes,
    codes_seed,
    p_dh,
    dh,
    p_dc,
    dc,
    p_h_out,
    p_c_out,
    states,
    table,
    entries,
    rows,
    length,
    each,
    H: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_H: tl.constexpr,
    PRECISION: tl.constexpr,
    ALIGNED: tl.constexpr,
    ADD: tl.constexpr,
):
    """For some entries of a table the sum of what came for h and c of all rows that looked them up.

    A product with the matrix that tells who looked up what: in fixed order, without atomics. A
    split sums `each` rows, and puts its sums `entries` states behind those of the one before.
    Grid: (tiles of entries times tiles of features, splits, S).
    """
    H_TILES: tl.constexpr = (H + BLOCK_H - 1) // BLOCK_H
    i_e, i_h = tl.program_id(0) // H_TILES, tl.program_id(0) % H_TILES
    i_split, i_seed = tl.program_id(1), tl.program_id(2)
    o_e = i_e * BLOCK_E + tl.arange(0, BLOCK_E)
    o_h = i_h * BLOCK_H + tl.arange(0, BLOCK_H)
    m_h = (o_h < H)[None, :]
    b_h = tl.zeros((BLOCK_E, BLOCK_H), tl.float32)
    b_c = tl.zeros((BLOCK_E, BLOCK_H), tl.float32)
    stop = tl.minimum(rows, (i_split + 1) * each)
    for start in range(i_split * each, stop, BLOCK_R):
        o_row = start + tl.arange(0, BLOCK_R)
        m_row = o_row < stop
        b_code = tl.load(p_codes + i_seed.to(tl.int64) * codes_seed + o_row, m_row, -1)
        is_mine = b_code[None, :] == o_e[:, None]
        m = m_row[:, None] & m_h
        o_in = place(i_seed, o_row, length, dh, False, ALIGNED)[:, None] + o_h[None, :]
        b_dh = tl.load(p_dh + o_in, m, 0.0)
        b_h = tl.dot(is_mine.to(b_dh.dtype), b_dh, b_h, input_precision=PRECISION)
        o_in = place(i_seed, o_row, length, dc, False, ALIGNED)[:, None] + o_h[None, :]
        b_dc = tl.load(p_dc + o_in, m, 0.0)
        b_c = tl.dot(is_mine.to(b_dc.dtype), b_dc, b_c, input_precision=PRECISION)
    m = (o_e < entries)[:, None] & m_h
    o_state = i_seed.to(tl.int64) * states + table + i_split * entries + o_e
    o_out = o_state[:, None] * H + o_h[None, :]
    if ADD:
        b_h += tl.load(p_h_out + o_out, m, 0.0).to(tl.float32)
        b_c += tl.load(p_c_out + o_out, m, 0.0)
    tl.store(p_h_out + o_out, b_h.to(p_h_out.dtype.element_ty), m)
    tl.store(p_c_out + o_out, b_c, m)
