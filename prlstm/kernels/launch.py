"""How the kernels are launched: places, tiles, descriptors. Triton comes with the first launch."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from prlstm.kernels.tiles import Tile, block_for
from prlstm.kernels.weights import Tiled

# tiles of the kernel that computes no products, and how many of them one program takes
BACKWARD_ROWS, ROUNDS, BACKWARD_WARPS = 16, 4, 4
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
        return States(dense, (*dense.stride()[:3], 0, 0))


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
    tile: Tile,
    precision: str,
    index: States | None = None,
) -> None:
    """Compute `new_h`, `new_c` and, where they are wanted, the gates' sums.

    With `index` the incoming states are looked up, two neighbours there for each new one.
    """
    sizes = weights.block
    if shape.seeds * shape.rows * sizes.hidden_size == 0:
        return
    block = kernels(weights.weight)
    products = min(tile.products, block_for(sizes.input_size))
    pairs = None
    if index is None and sizes.input_size == weights.spacing:
        pairs = _pairs(h, sizes.input_size, shape)
    z_rows, d_z, d_c, d_h_out, d_c_out, d_gates = 0, None, None, None, None, None
    if pairs is not None:
        z_rows = h[0].where[0] // h[0].where[2] if shape.seeds > 1 else 0
        d_z = _joined(h, sizes.input_size, z_rows, pairs, shape, (tile.rows, products))
    pairs = shape.length if pairs is None else pairs
    arrays = (*h, *c) if index is None else (index,)
    is_linear = pairs == shape.length and _is_linear((*arrays, new_h, new_c), shape)
    # a descriptor for one seed ends where its rows do
    if is_linear and d_z is not None and shape.seeds == 1:
        box = (tile.rows, tile.features)
        if c and _pairs(c, sizes.hidden_size, shape) == pairs:
            d_c = _joined(c, sizes.hidden_size, 0, pairs, shape, box)
        if all(_is_aligned(one) for one in (new_h, new_c)):
            d_h_out, d_c_out = (
                _joined([one], sizes.hidden_size, 0, pairs, shape, box) for one in (new_h, new_c)
            )
        if gates is not None:
            d_gates = _joined([States(gates.tensor, (0, 0, weights.columns, gates.first * weights.columns, 0))], weights.columns, 0, pairs, shape, box)
    rows = shape.batch * pairs
    tiles = -(-rows // tile.rows) * -(-sizes.hidden_size // tile.features)
    block.gated_forward[tiles, shape.seeds](
        d_z,
        z_rows,
        *_operands([] if d_z is not None else h, 2),
        d_c,
        *_operands([] if d_c is not None else c, 2),
        *_operands([] if index is None else [index], 1),
        descriptor(weights.weight, (4 * tile.features, products)),
        descriptor(weights.weight, (tile.features, products)),
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
    block.gated_backward[grid](
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
    tile: Tile,
    precision: str,
    add: tuple[bool, bool] = (False, False),
) -> None:
    """Put `dgates @ weight` where the incoming h have their gradients, or add it there."""
    sizes = weights.block
    if shape.seeds * shape.rows == 0:
        return
    wide = sizes.inputs * sizes.input_size
    width = min(tile.features, block_for(wide))
    tiles = -(-shape.rows // tile.rows) * -(-wide // width)
    matrix = dgates.tensor.view(-1, weights.columns)
    products(matrix).input_gradient[tiles, shape.seeds](
        descriptor(matrix, (tile.rows, tile.products)),
        dgates.first,
        dgates.tensor.shape[1],
        descriptor(weights.weight, (tile.products, width)),
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


def kernels(operand: Tensor) -> ModuleType:
    """The kernels of the block, for a tensor that they can run on."""
    from prlstm.kernels import block

    if operand.device.type != "cuda" and not block.INTERPRETED:
        raise ValueError(f"weight is on {operand.device}: expected a CUDA device")
    return block


def products(operand: Tensor) -> ModuleType:
    """The kernels of the products, likewise."""
    from prlstm.kernels import product

    kernels(operand)
    return product


def _operands(states: Sequence[States], count: int) -> list[Tensor | tuple[int, ...] | None]:
    """Tensor and places of each, then None for those that are missing."""
    given: list[Tensor | tuple[int, ...] | None] = [part for one in states for part in one]
    return given + [None] * (2 * (count - len(states)))


def _is_linear(arrays: Sequence[States], shape: Shape) -> bool:
    """Whether the states of all arrays follow one another, each array at one stride."""
    return all(
        w[3] == w[4] and (shape.batch == 1 or w[1] == shape.length * w[2])
        for _, w in arrays
    )


def _are_multiples(arrays: Sequence[States]) -> bool:
    return not any(number % 16 for _, where in arrays for number in where)


def _is_aligned(one: States) -> bool:
    """Whether a descriptor can find these states."""
    size = one.tensor.element_size()
    _, _, step, start, _ = one.where
    return not (
        step * size % DESCRIPTOR_BYTES
        or (one.tensor.data_ptr() + start * size) % DESCRIPTOR_BYTES
    )


def _pairs(states: Sequence[States], size: int, shape: Shape) -> int | None:
    """If the states of each merge stand side by side, the rows for one row of the batch.

    There may be more of them than merges: at the end of a level a state may have no partner.
    """
    first, *others = states
    seed, batch, step, start, begin = first.where
    for j, (tensor, where) in enumerate(others, 1):
        at = start + j * size
        if tensor is not first.tensor or where != (seed, batch, step, at, at):
            return None
    if begin != start or step < len(states) * size or not _is_aligned(first):
        return None
    if shape.seeds > 1 and seed % step:
        return None
    if shape.batch == 1:
        return shape.length
    pairs = batch // step
    return pairs if batch % step == 0 and shape.length <= pairs <= shape.length + 1 else None


def _joined(
    states: Sequence[States],
    size: int,
    z_rows: int,
    pairs: int,
    shape: Shape,
    box: tuple[int, int],
) -> Any:
    """A descriptor of states side by side, one row for each merge."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    tensor, (_, _, step, start, _) = states[0]
    width = len(states) * size
    origin = tensor.storage_offset() + start
    there = tensor.untyped_storage().nbytes() // tensor.element_size() - origin
    rows = min((shape.seeds - 1) * z_rows + shape.batch * pairs, (there - width) // step + 1)
    base = tensor.as_strided((1,), (1,), origin)
    return TensorDescriptor(base, [rows, width], [step, 1], list(box))


def descriptor(matrix: Tensor, box: tuple[int, int]) -> Any:
    """Tells the copy engine of a matrix whose tiles are `box`."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor(matrix, list(matrix.shape), list(matrix.stride()), list(box))
