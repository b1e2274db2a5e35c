"""How the kernels are launched: places, tiles, descriptors. Triton comes with the first launch."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from prlstm.kernels.tiles import MANY_ROWS, arithmetic, block_for, block_tile, tile_for
from prlstm.kernels.weights import Tiled, descriptor

# tiles of the kernel that computes no products, and how many of them one program takes
BACKWARD_ROWS, ROUNDS, BACKWARD_WARPS = 16, 4, 4
# states that one program looks up
LOOKED_UP_ROWS = 16
# what begins at a multiple of so many bytes may be read by a descriptor
DESCRIPTOR_BYTES = 16


class States(NamedTuple):
    """Many states in one tensor, as a kernel finds them.

    `where` holds the strides of seed, batch and state, the place that strides count from, and
    the place of the first state, which may stand elsewhere.
    """

    tensor: Tensor
    where: tuple[int, int, int, int, int]

    @staticmethod
    def of(t: Tensor) -> "States":
        """All of `t` (S, B, L, size)."""
        dense = t if t.stride(-1) == 1 or t.shape[-1] == 1 else t.contiguous()
        seed, batch, state, _ = dense.stride()
        return States(dense, (seed, batch, state, 0, 0))


class Rows(NamedTuple):
    """Rows of `tensor` (S, R, columns), from `first` on: one for each state that is computed."""

    tensor: Tensor
    first: int


class Shape(NamedTuple):
    """How many states are computed: `length` for each of `batch` rows, of each seed."""

    seeds: int
    batch: int
    length: int

    @property
    def rows(self) -> int:
        """States of a seed."""
        return self.batch * self.length


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
    index: States | None = None,
) -> None:
    """Compute `new_h`, `new_c` and, where they are wanted, the gates' sums.

    With `index` the incoming c are looked up, two neighbours there for each new state.
    """
    sizes = weights.block
    if shape.seeds * shape.rows * sizes.hidden_size == 0:
        return
    block = kernels(weights.weight)
    how = arithmetic(weights.weight.dtype, precision)
    tile = block_tile(sizes.states, how, sizes.hidden_size, shape.seeds * shape.rows)
    products = min(tile.products, block_for(sizes.input_size))
    # the incoming h as one row, if they stand so
    joined = None
    if sizes.input_size == weights.spacing:
        joined = _joined(h, sizes.input_size, shape, (tile.rows, products))
    d_z, z_rows, pairs = joined or (None, 0, shape.length)
    c_in = c if index is None else [index]
    is_linear = pairs == shape.length and _is_linear((*h, *c_in, new_h, new_c), shape)
    d_c, d_h_out, d_c_out, d_gates = None, None, None, None
    # a row for each state and no more; descriptors for one seed end where its rows do
    if pairs == shape.length and shape.seeds == 1 and shape.rows >= MANY_ROWS:
        box = (tile.rows, tile.features)
        if index is None:
            d_c = _described(c, sizes.hidden_size, shape, box)
        outputs = [_described([one], sizes.hidden_size, shape, box) for one in (new_h, new_c)]
        if None not in outputs:
            d_h_out, d_c_out = outputs
        if gates is not None:
            place, columns = gates.first * weights.columns, weights.columns
            where = (0, columns * shape.length, columns, place, place)
            d_gates = _described([States(gates.tensor, where)], columns, shape, box)
    rows = shape.batch * pairs
    tiles = -(-rows // tile.rows) * -(-sizes.hidden_size // tile.features)
    block.gated_forward[tiles, shape.seeds](
        d_z,
        z_rows,
        *_operands([] if d_z is not None else h, 2),
        d_c,
        *_operands([] if d_c is not None else c, 2),
        *_operands([] if index is None else [index], 1),
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
        LINEAR=is_linear,
        ALIGNED=_are_multiples((*h, *c, new_h, new_c)),
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

    `dgates` stands as `gates` does. With `add` the latter are added to what stands there. Of the
    rows of `dbias`, as many are written as `parts` says.
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
        ROUNDS=ROUNDS,
        FAST=dgates.dtype != torch.float32 and not block.INTERPRETED,
        ADD_LEFT=add[0],
        ADD_RIGHT=add[1],
        LINEAR=_is_linear(arrays, shape),
        ALIGNED=_are_multiples(arrays),
        num_warps=BACKWARD_WARPS,
    )


def parts(rows: int) -> int:
    """How many sums of `dgates` over some rows the backward pass leaves."""
    return -(-rows // (BACKWARD_ROWS * ROUNDS))


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
    tile = tile_for("input", arithmetic(weights.weight.dtype, precision))
    wide = sizes.inputs * sizes.input_size
    width = min(tile.features, block_for(wide))
    tiles = -(-shape.rows // tile.rows) * -(-wide // width)
    matrix = dgates.tensor.view(-1, weights.columns)
    gradients(matrix).input_gradient[tiles, shape.seeds](
        descriptor(matrix, (tile.rows, tile.products)),
        dgates.first,
        dgates.tensor.shape[1],
        weights.descriptor((tile.products, width)),
        *_operands(dh, 2),
        shape.rows,
        shape.length,
        C=weights.columns,
        K=sizes.input_size,
        STATES=sizes.inputs,
        BLOCK_M=tile.rows,
        BLOCK_N=width,
        BLOCK_K=tile.products,
        GROUP_M=tile.group,
        PRECISION=precision,
        ADD_LEFT=add[0],
        ADD_RIGHT=add[1],
        LINEAR=_is_linear(dh, shape),
        ALIGNED=_are_multiples(dh),
        num_warps=tile.warps,
        num_stages=tile.stages,
    )


def look_up(table: Tensor, codes: Tensor, out: Tensor) -> None:
    """Put the entries of `table` (S, V, H) at `codes` (S, B, L) into the first L states of `out`.

    That may be states from some place on in memory (S, B, width, H).
    """
    from prlstm.kernels import pack

    kernels(table)
    (seeds, batch, length), size = codes.shape, table.shape[2]
    grid = -(-length // LOOKED_UP_ROWS), batch, seeds
    width = out.stride(1) // size
    pack.look_up[grid](
        table, codes, out, table.shape[1], length, width,
        H=size, BLOCK_M=LOOKED_UP_ROWS, BLOCK_H=block_for(size),
    )  # fmt: skip


def kernels(operand: Tensor) -> ModuleType:
    """The kernels of the block, for a tensor that they can run on."""
    from prlstm.kernels import block

    if operand.device.type != "cuda" and not block.INTERPRETED:
        raise ValueError(f"weight is on {operand.device}: expected a CUDA device")
    return block


def gradients(operand: Tensor) -> ModuleType:
    """The kernels of the backward pass, likewise."""
    from prlstm.kernels import gradients

    kernels(operand)
    return gradients


def _operands(states: Sequence[States], count: int) -> list[Tensor | tuple[int, ...] | None]:
    """Tensor and places of each, then None for those that are missing."""
    given: list[Tensor | tuple[int, ...] | None] = [part for one in states for part in one]
    return given + [None] * (2 * (count - len(states)))


def _is_linear(arrays: Sequence[States], shape: Shape) -> bool:
    """Whether the states of all arrays follow one another, each array at one stride."""
    return all(
        w[3] == w[4] and (shape.batch == 1 or w[1] == shape.length * w[2]) for _, w in arrays
    )


def _are_multiples(arrays: Sequence[States]) -> bool:
    return not any(number % 16 for _, where in arrays for number in where)


class _Joined(NamedTuple):
    """A descriptor of rows; how many there are for each seed, and for each row of the batch."""

    descriptor: Any
    each: int
    pairs: int


def _joined(
    states: Sequence[States], size: int, shape: Shape, box: tuple[int, int]
) -> _Joined | None:
    """One row for each merge, if its states stand side by side.

    There may be more rows than merges: at the end of a level a state may have no partner.
    """
    from triton.tools.tensor_descriptor import TensorDescriptor

    tensor, (seed, batch, step, start, begin) = states[0]
    for j, (other, where) in enumerate(states[1:], 1):
        at = start + j * size
        if other is not tensor or where != (seed, batch, step, at, at):
            return None
    bytes_each, width = tensor.element_size(), len(states) * size
    is_aligned = not (
        step * bytes_each % DESCRIPTOR_BYTES
        or (tensor.data_ptr() + start * bytes_each) % DESCRIPTOR_BYTES
    )
    if begin != start or step < width or not is_aligned or (shape.seeds > 1 and seed % step):
        return None
    pairs, rest = (shape.length, 0) if shape.batch == 1 else divmod(batch, step)
    if rest or not shape.length <= pairs <= shape.length + 1:
        return None
    each = seed // step if shape.seeds > 1 else 0
    # the last row may have no partner in memory either
    origin = tensor.storage_offset() + start
    there = tensor.untyped_storage().nbytes() // bytes_each - origin
    rows = min((shape.seeds - 1) * each + shape.batch * pairs, (there - width) // step + 1)
    base = tensor.as_strided((1,), (1,), origin)
    return _Joined(TensorDescriptor(base, [rows, width], [step, 1], list(box)), each, pairs)


def _described(
    states: Sequence[States], size: int, shape: Shape, box: tuple[int, int]
) -> Any | None:
    """The descriptor alone, if there is a row for each merge and no more."""
    found = _joined(states, size, shape, box) if states else None
    return None if found is None or found.pairs != shape.length else found.descriptor
