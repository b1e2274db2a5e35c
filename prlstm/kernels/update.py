"""One step of Adam for all weights of many seeds, in Triton: gradients clipped by seed.

Weights, gradients and moments come as tuples of tensors, (S, size) each; a program has a block of
one of them. Letters and prefixes as in `prlstm.kernels.block`.
"""

import triton
import triton.language as tl


@triton.jit
def square_gradients(p_gradients, sizes, p_squares, N: tl.constexpr, BLOCK: tl.constexpr):
    """The sum of the squares of a block of gradients, one of all of a seed. Grid: (blocks, S)."""
    i_block, i_seed = tl.program_id(0), tl.program_id(1)
    first = 0
    b_sum = 0.0
    for i in tl.static_range(N):
        blocks = tl.cdiv(sizes[i], BLOCK)
        if (i_block >= first) & (i_block < first + blocks):
            o = (i_block - first) * BLOCK + tl.arange(0, BLOCK)
            p = p_gradients[i] + i_seed.to(tl.int64) * sizes[i] + o
            b_g = tl.load(p, o < sizes[i], 0.0).to(tl.float32)
            b_sum += tl.sum(b_g * b_g)
        first += blocks
    tl.store(p_squares + i_seed * tl.num_programs(0) + i_block, b_sum)


@triton.jit
def update_weights(
    p_weights,
    p_gradients,
    p_first,
    p_second,
    sizes,
    p_squares,
    p_norm,
    p_step,
    p_rate,
    clip,
    beta_1,
    beta_2,
    epsilon,
    N: tl.constexpr,
    BLOCK: tl.constexpr,
    SQUARES: tl.constexpr,
):
    """Move a block of weights; the norm of all gradients of a seed is kept. Grid: (blocks, S).

    `p_step` holds how many steps were made before this one.
    """
    i_block, i_seed = tl.program_id(0), tl.program_id(1)
    blocks_of_all = tl.num_programs(0)
    # every program sums what all programs of the seed need, in one order
    o_square = tl.arange(0, SQUARES)
    b_squares = tl.load(
        p_squares + i_seed * blocks_of_all + o_square, o_square < blocks_of_all, 0.0
    )
    norm = tl.sqrt(tl.sum(b_squares))
    if i_block == 0:
        tl.store(p_norm + i_seed, norm)
    scale = tl.where(norm > clip, clip / norm, 1.0)
    step = (tl.load(p_step) + 1).to(tl.float32)
    rate = tl.load(p_rate).to(tl.float32) / (1.0 - tl.exp2(step * tl.log2(beta_1 * 1.0)))
    second_scale = tl.sqrt(1.0 - tl.exp2(step * tl.log2(beta_2 * 1.0)))
    first = 0
    for i in tl.static_range(N):
        blocks = tl.cdiv(sizes[i], BLOCK)
        if (i_block >= first) & (i_block < first + blocks):
            o = (i_block - first) * BLOCK + tl.arange(0, BLOCK)
            m = o < sizes[i]
            at = i_seed.to(tl.int64) * sizes[i] + o
            b_g = tl.load(p_gradients[i] + at, m, 0.0).to(tl.float32) * scale
            b_m = tl.load(p_first[i] + at, m, 0.0)
            b_v = tl.load(p_second[i] + at, m, 0.0)
            b_m += (b_g - b_m) * (1.0 - beta_1)
            b_v = b_v * beta_2 + b_g * b_g * (1.0 - beta_2)
            b_w = tl.load(p_weights[i] + at, m, 0.0)
            b_w -= rate * b_m / (tl.sqrt(b_v) / second_scale + epsilon)
            tl.store(p_first[i] + at, b_m, m)
            tl.store(p_second[i] + at, b_v, m)
            tl.store(p_weights[i] + at, b_w, m)
        first += blocks
