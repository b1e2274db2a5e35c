"""How the kernels are launched: places, tiles, descriptors. Triton comes with the first launch."""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from types import ModuleType

import torch
from torch import Tensor

from prlstm.kernels.places import (
    Counted,
    Entries,
    Rows,
    Shape,
    States,
    are_multiples,
    described,
    is_linear,
    joined,
)
from prlstm.kernels.tiles import MANY_ROWS, arithmetic, block_for, block_tile, input_tile
from prlstm.kernels.weights import Tiled, descriptor

# tiles of the kernel that computes no products; how many of them one program takes where there are
# many rows, and how many that is
BACKWARD_ROWS, BACKWARD_WARPS, ROUNDS, ROWS_FOR_ROUNDS = 16, 4, 4, 1 << 10
# blocks whose numbers one program finds, states that one looks up, merges of those
SPELLED_ROWS, LOOKED_UP_ROWS, LOOKED_UP_MERGES = 256, 16, 32
# entries, rows and features of a tile whose gradients are summed; rows that are worth a split
SUMMED_ENTRIES, SUMMED_ROWS, SUMMED_FEATURES = 32, 64, 64
ROWS_OF_A_SPLIT, MOST_SPLITS = 1024, 64


def empty(like: Tensor, shape: Sequence[int], dtype: torch.dtype | None = None) -> Tensor:
    """Memory for an output of a kernel; a test puts NaN there first."""
    return like.new_empty(shape, dtype=dtype)


def forward(
    h: Sequence[States],
    c: Sequence[States],
    weights: Tiled,
    new_h: States,
    new_c: States,
    gates: Rows | None,
    shape: Shape,
    *,
    precision: str,
    counted: Counted | None = None,
) -> None:
    """Compute `new_h`, `new_c` and, where they are wanted, the gates' sums.

    With `counted` not all rows are computed.
    """
    sizes = weights.block
    if shape.seeds * shape.rows * sizes.hidden_size == 0:
        return
    block = kernels(weights.weight)
    how = arithmetic(weights.weight.dtype, precision)
    likely = shape.rows if counted is None else counted.likely
    tile = block_tile(sizes.states, how, sizes.hidden_size, shape.seeds * likely)
    products = min(tile.products, block_for(sizes.input_size))
    # the incoming h as one row, if they stand so
    found = None
    places = None if counted is None else counted.places
    if sizes.input_size == weights.spacing and places is None:
        found = joined(h, sizes.input_size, shape, (tile.rows, products))
    d_z, z_rows, pairs = found or (None, 0, shape.length)
    linear = pairs == shape.length and is_linear([*h, *c, new_h, new_c], shape)
    d_c, d_h_out, d_c_out, d_gates = None, None, None, None
    # a row for each state and no more; descriptors for one seed end where its rows do
    is_dense = pairs == shape.length and shape.seeds == 1 and counted is None
    if is_dense and shape.rows >= MANY_ROWS:
        box = (tile.rows, tile.features)
        d_c = described(c, sizes.hidden_size, shape, box)
        outputs = [described([one], sizes.hidden_size, shape, box) for one in (new_h, new_c)]
        if None not in outputs:
            d_h_out, d_c_out = outputs
        if gates is not None:
            place, columns = gates.first * weights.columns, weights.columns
            where = (0, columns * shape.length, columns, place, place)
            d_gates = described([States(gates.tensor, where)], columns, shape, box)
    rows = shape.batch * pairs
    tiles = -(-rows // tile.rows) * -(-sizes.hidden_size // tile.features)
    block.gated_forward[tiles, shape.seeds](
        d_z,
        z_rows,
        *_operands([] if d_z is not None else h, 2),
        d_c,
        *_operands([] if d_c is not None else c, 2),
        *((None, 0) if counted is None else (counted.counts, counted.at)),
        places,
        weights.descriptor((4 * tile.features, products)),
        weights.descriptor((tile.features, products)),
        weights.bias,
        d_h_out,
        *([None, None] if d_h_out is not None else new_h),
        d_c_out,
        *([None, None] if d_c_out is not None else new_c),
        d_gates,
        *((None, 0, 0) if gates is None else (gates.tensor, gates.first, gates.tensor.shape[1])),
        rows,
        pairs,
        shape.length,
        N=sizes.states,
        H=sizes.hidden_size,
        K=sizes.input_size,
        SPACING=weights.spacing,
        BLOCK_M=tile.rows,
        BLOCK_H=tile.features,
        BLOCK_K=products,
        GROUP_M=tile.group,
        PRECISION=precision,
        # the interpreter knows no instruction of the hardware
        FAST=weights.weight.dtype != torch.float32 and not block.INTERPRETED,
        LINEAR=linear,
        ALIGNED=are_multiples((*h, *c, new_h, new_c)),
        AHEAD=tile.ahead,
        num_warps=tile.warps,
        num_stages=tile.stages,
    )


def backward(
    gates: Rows,
    dgates: Tensor,
    c: Sequence[States],
    dh: States | None,
    dc: States | None,
    dc_in: Sequence[States],
    dbias: Rows | None,
    weights: Tiled,
    shape: Shape,
    *,
    add: tuple[bool, bool] = (False, False),
) -> None:
    """Compute the gradients of the gates' sums and of the incoming c.

    `dgates` has the rows of `gates`, and may have more. With `add` the latter are added to what
    stands there. Of the rows of `dbias`, as many are written as `parts` says.
    """
    sizes = weights.block
    if shape.seeds * shape.rows * sizes.hidden_size == 0:
        return
    arrays = (*c, *dc_in, *(one for one in (dh, dc) if one is not None))
    grid = parts(shape.rows), -(-sizes.hidden_size // weights.features), shape.seeds
    block = kernels(dgates)
    gradients(dgates).gated_backward[grid](
        gates.tensor,
        dgates,
        gates.first,
        gates.tensor.shape[1],
        dgates.shape[1],
        *_operands(c, 2),
        *_operands([] if dh is None else [dh], 1),
        *_operands([] if dc is None else [dc], 1),
        *_operands(dc_in, 2),
        *((None, 0, 0) if dbias is None else (dbias.tensor, dbias.first, dbias.tensor.shape[1])),
        shape.rows,
        shape.length,
        N=sizes.states,
        H=sizes.hidden_size,
        BLOCK_M=BACKWARD_ROWS,
        BLOCK_H=weights.features,
        ROUNDS=_rounds(shape.rows),
        FAST=dgates.dtype != torch.float32 and not block.INTERPRETED,
        ADD_LEFT=add[0],
        ADD_RIGHT=add[1],
        LINEAR=is_linear(arrays, shape),
        ALIGNED=are_multiples(arrays),
        num_warps=BACKWARD_WARPS,
    )


def parts(rows: int) -> int:
    """How many sums of `dgates` over some rows the backward pass leaves."""
    return -(-rows // (BACKWARD_ROWS * _rounds(rows)))


def _rounds(rows: int) -> int:
    return ROUNDS if rows >= ROWS_FOR_ROUNDS else 1


def input_gradient(
    dgates: Rows,
    weights: Tiled,
    dh: Sequence[States],
    shape: Shape,
    *,
    precision: str,
    add: tuple[bool, bool] = (False, False),
) -> None:
    """Put `dgates @ weight` where the incoming h have their gradients, or add it there."""
    sizes = weights.block
    if shape.seeds * shape.rows == 0:
        return
    tile = input_tile(arithmetic(weights.weight.dtype, precision), shape.seeds * shape.rows)
    wide = sizes.inputs * sizes.input_size
    width = min(tile.features, block_for(wide))
    # a product must not run into the weights of the next seed
    terms = tile.products
    while weights.columns % terms:
        terms //= 2
    tiles = -(-shape.rows // tile.rows) * -(-wide // width)
    matrix = dgates.tensor.view(-1, weights.columns)
    gradients(matrix).input_gradient[tiles, shape.seeds](
        descriptor(matrix, (tile.rows, terms)),
        dgates.first,
        dgates.tensor.shape[1],
        weights.descriptor((terms, width)),
        *_operands(dh, 2),
        shape.rows,
        shape.length,
        C=weights.columns,
        K=sizes.input_size,
        STATES=sizes.inputs,
        BLOCK_M=tile.rows,
        BLOCK_N=width,
        BLOCK_K=terms,
        GROUP_M=tile.group,
        PRECISION=precision,
        ADD_LEFT=add[0],
        ADD_RIGHT=add[1],
        LINEAR=is_linear(dh, shape),
        ALIGNED=are_multiples(dh),
        num_warps=tile.warps,
        num_stages=tile.stages,
    )


def spell(ids: Tensor, letters: int, firsts: Tensor, size: int, blocks: range) -> Tensor:
    """The numbers of some blocks of `size` ids (S, B, T): (S, B, blocks)."""
    kernels(ids)
    seeds, batch, _ = ids.shape
    rows, length = batch * len(blocks), len(blocks)
    codes = empty(ids, (seeds, batch, length), torch.int32)
    if rows:
        imported("lookup").spell[-(-rows // SPELLED_ROWS), seeds](
            ids, *ids.stride()[:2], firsts, letters, blocks.start, blocks.step, size, codes,
            rows, length, BLOCK=SPELLED_ROWS,
        )  # fmt: skip
    return codes


def look_up(
    memory: tuple[Tensor, Tensor],
    place: int,
    codes: Tensor,
    out: tuple[States, States],
    shape: Shape,
) -> None:
    """Put entries of a table, which begins at state `place`, where h and c of `out` are.

    `codes` (S, ...) tell which, or (1, ...) for all seeds.
    """
    kernels(memory[0])
    size = memory[0].shape[2]
    if shape.rows:
        imported("lookup").look_up[-(-shape.rows // LOOKED_UP_ROWS), shape.seeds](
            *memory, memory[0].shape[1], place, codes, _seed_stride(codes, shape),
            *_operands(out, 2), shape.rows, shape.length,
            H=size, BLOCK_M=LOOKED_UP_ROWS, BLOCK_H=block_for(size), ALIGNED=are_multiples(out),
        )  # fmt: skip


def merge_entries(
    entries: Entries,
    codes: Tensor,
    weights: Tiled,
    new_h: States,
    new_c: States,
    shape: Shape,
) -> None:
    """Compose neighbouring entries, those of `codes` (S, B, T) or (1, B, T) for all seeds.

    The products with the weights, in whose tiles the sums are, were made before.
    """
    block = kernels(weights.weight)
    if shape.seeds * shape.rows == 0:
        return
    seed, batch, _ = codes.stride()
    outputs = [new_h, new_c]
    imported("lookup").merge_entries[-(-shape.rows // LOOKED_UP_MERGES), shape.seeds](
        entries.sums, entries.sums.shape[1], entries.c, entries.c.shape[1], entries.place,
        codes, seed if codes.shape[0] == shape.seeds else 0, batch,
        *_operands(outputs, 2), shape.rows, shape.length,
        H=weights.block.hidden_size, BLOCK_M=LOOKED_UP_MERGES, BLOCK_H=weights.features,
        FAST=weights.weight.dtype != torch.float32 and not block.INTERPRETED,
        ALIGNED=are_multiples(outputs),
    )  # fmt: skip


def sum_entries(
    codes: Tensor,
    dh: States,
    dc: States,
    memory: tuple[Tensor, Tensor],
    place: int,
    entries: int,
    shape: Shape,
    *,
    add: bool,
) -> None:
    """Sum what came for looked-up states by their codes, to the entries from state `place` on."""
    block = kernels(memory[0])
    size = memory[0].shape[2]
    features = min(SUMMED_FEATURES, block_for(size))
    splits = min(MOST_SPLITS, max(1, shape.rows // ROWS_OF_A_SPLIT))
    each = -(-shape.rows // splits)
    out, states, first = memory, memory[0].shape[1], place
    if splits > 1:
        parts = empty(memory[1], (2, shape.seeds, splits, entries, size), torch.float32)
        out, states, first = (parts[0], parts[1]), splits * entries, 0
    half = dh.tensor.dtype != torch.float32
    tiles = -(-entries // SUMMED_ENTRIES) * -(-size // features)
    imported("lookup").sum_entries[tiles, splits, shape.seeds](
        codes, _seed_stride(codes, shape), *_operands([dh, dc], 2), *out, states, first, entries,
        shape.rows, shape.length, each,
        H=size, BLOCK_E=SUMMED_ENTRIES, BLOCK_R=SUMMED_ROWS, BLOCK_H=features,
        PRECISION="tf32" if half and not block.INTERPRETED else "ieee",
        ALIGNED=are_multiples([dh, dc]), ADD=add and splits == 1,
    )  # fmt: skip
    if splits > 1:
        for whole, part in zip(memory, parts.sum(2), strict=True):
            here = whole[:, place : place + entries]
            here.copy_(here + part if add else part)


def put_states(
    made: tuple[Tensor, Tensor],
    folded: tuple[Tensor, Tensor],
    slots: Tensor,
    stops: Tensor,
    folds: Tensor,
    blocks: tuple[Tensor, Tensor],
    prefixes: tuple[Tensor, Tensor],
    last: Tensor,
    counted: Counted,
) -> None:
    """Put new blocks and prefixes of streams where they wait, and the h of these to `last`."""
    kernels(last)
    rows, size = last.shape
    imported("slots").put_states[-(-rows // LOOKED_UP_ROWS),](
        *made, *folded, counted.counts, counted.at, slots, stops, folds, *blocks, *prefixes, last,
        H=size, BLOCK_M=LOOKED_UP_ROWS, BLOCK_H=block_for(size),
    )  # fmt: skip


def copy_states(
    source: tuple[Tensor, Tensor], target: tuple[Tensor, Tensor], counted: Counted
) -> None:
    """Copy the first states (rows, H) of one array to another."""
    kernels(target[0])
    rows, size = target[0].shape
    imported("slots").copy_states[-(-rows // LOOKED_UP_ROWS),](
        *source, *target, counted.counts, counted.at,
        H=size, BLOCK_M=LOOKED_UP_ROWS, BLOCK_H=block_for(size),
    )  # fmt: skip


def _seed_stride(codes: Tensor, shape: Shape) -> int:
    """Codes of one seed may be those of all."""
    return shape.rows if codes.shape[0] == shape.seeds else 0


def kernels(operand: Tensor) -> ModuleType:
    """The kernels of the block, for a tensor that they can run on."""
    block = imported("block")
    if operand.device.type != "cuda" and not block.INTERPRETED:
        raise ValueError(f"weight is on {operand.device}: expected a CUDA device")
    return block


def gradients(operand: Tensor) -> ModuleType:
    """The kernels of the backward pass, likewise."""
    kernels(operand)
    return imported("gradients")


@cache
def imported(name: str) -> ModuleType:
    """A module of kernels, which needs Triton."""
    return import_module(f"prlstm.kernels.{name}")


def _operands(states: Sequence[States], count: int) -> list[Tensor | tuple[int, ...] | None]:
    """Tensor and places of each, then None for those that are missing."""
    given: list[Tensor | tuple[int, ...] | None] = [part for one in states for part in one]
    return given + [None] * (2 * (count - len(states)))
