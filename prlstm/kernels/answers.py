"""Logits to loss, its gradient and what is right, in Triton: as `prlstm.tasks.scores` has them."""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["rows"])
def score(
    p_logits,
    p_target,
    p_mask,
    p_dlogits,
    p_scores,
    rows,
    C: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """Of some answers (rows, C) of a seed the loss, how many are right and how many count.

    The loss is divided by the number of all rows of the seed; so is its gradient, which goes to
    `p_dlogits`. Of equal logits the first one wins. `p_scores` (3, S, blocks) are to be summed.
    Grid: (blocks, S).
    """
    i_block, i_seed = tl.program_id(0), tl.program_id(1)
    blocks, seeds = tl.num_programs(0), tl.num_programs(1)
    o_c = tl.arange(0, BLOCK_C)
    m_c = (o_c < C)[None, :]
    o_row = i_block * BLOCK + tl.arange(0, BLOCK)
    m_row = o_row < rows
    o_row = i_seed.to(tl.int64) * rows + o_row
    o_x = (o_row * C)[:, None] + o_c[None, :]
    b_x = tl.load(p_logits + o_x, m_row[:, None] & m_c, 0.0).to(tl.float32)
    b_x = tl.where(m_c, b_x, float("-inf"))
    b_target = tl.load(p_target + o_row, m_row, 0)
    b_most = tl.max(b_x, 1)
    b_e = tl.exp(b_x - b_most[:, None])
    b_sum = tl.sum(b_e, 1)
    is_target = o_c[None, :] == b_target[:, None]
    b_said = tl.sum(tl.where(is_target, b_x, 0.0), 1)
    b_loss = tl.where(m_row, b_most + tl.log(b_sum) - b_said, 0.0)
    b_dx = (b_e / b_sum[:, None] - is_target.to(tl.float32)) / rows
    tl.store(p_dlogits + o_x, b_dx.to(p_dlogits.dtype.element_ty), m_row[:, None] & m_c)
    b_first = tl.min(tl.where(b_x == b_most[:, None], o_c[None, :], BLOCK_C), 1)
    counts = (tl.load(p_mask + o_row, m_row, 0) != 0) & m_row
    is_right = counts & (b_first == b_target)
    p_out = p_scores + i_seed * blocks + i_block
    tl.store(p_out, (tl.sum(b_loss) / rows).to(tl.float64))
    tl.store(p_out + seeds * blocks, tl.sum(is_right.to(tl.int32)).to(tl.float64))
    tl.store(p_out + 2 * seeds * blocks, tl.sum(counts.to(tl.int32)).to(tl.float64))
