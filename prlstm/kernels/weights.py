"""Weights as the kernels read them: in tiles, padded with zeros, in the type of the products.

For every tile of BLOCK features stand the rows of all G gates one after the other: (S, tiles, G,
BLOCK, columns), where the columns of each incoming state are padded too. Features that are
padding keep c = 0 and h = 0 whatever is merged, so nobody needs to look after them.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

# rows of a matrix that is read by a descriptor begin at multiples of 16 bytes
ALIGNMENT = 16
# columns, and rows of gradients, that one program puts in place; parts of a bias summed at a time
PACKED_COLUMNS, UNPACKED_ROWS, SUMMED_PARTS = 128, 8, 32


class Block(NamedTuple):
    """The sizes of one gated block: `states` that come in, what it reads of each, what it gives."""

    states: int
    input_size: int
    hidden_size: int

    @property
    def gates(self) -> int:
        """The forget gates, i, o, u."""
        return self.states + 3

    @property
    def inputs(self) -> int:
        """How many h are read."""
        return max(self.states, 1)

    def columns(self, features: int) -> int:
        """The rows of its weights in tiles of so many features."""
        return -(-self.hidden_size // features) * features * self.gates


def descriptor(matrix: Tensor, box: tuple[int, int]) -> Any:
    """Tells the copy engine of a matrix whose tiles are `box`."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor(matrix, list(matrix.shape), list(matrix.stride()), list(box))


@dataclass(frozen=True, eq=False)
class Tiled:
    """The weights of a block: `weight` (S * C, n * spacing), `bias` (S, C); C is tiles * G * BLOCK.

    `spacing` is the number of columns for each incoming state.
    """

    block: Block
    weight: Tensor
    bias: Tensor | None
    # features of a tile
    features: int
    spacing: int
    _descriptors: dict[tuple[int, int], Any] = field(default_factory=dict)

    @property
    def columns(self) -> int:
        """C, the columns of what the gates are made of."""
        return self.block.columns(self.features)

    def descriptor(self, box: tuple[int, int]) -> Any:
        """Tells the copy engine of the weight, for tiles of `box`; made once for all launches."""
        if box not in self._descriptors:
            self._descriptors[box] = descriptor(self.weight, box)
        return self._descriptors[box]


def tile_weights(
    weight: Tensor,
    bias: Tensor | None,
    block: Block,
    padded: Block,
    features: int,
    operand: torch.dtype,
) -> Tiled:
    """`weight` (S, G H, n K) and `bias` (S, G H), as a block of the padded sizes reads them."""
    from prlstm.kernels.pack import pack_weights

    seeds, columns = weight.shape[0], padded.columns(features)
    tiled_weight = weight.new_empty(seeds * columns, block.inputs * spacing(padded), dtype=operand)
    tiled_bias = None if bias is None else bias.new_empty(seeds, columns, dtype=torch.float32)
    tiles = columns // (block.gates * features)
    grid = tiles * block.gates, -(-tiled_weight.shape[1] // PACKED_COLUMNS), seeds
    if tiled_weight.numel():
        pack_weights[grid](
            weight.contiguous(),
            None if bias is None else bias.contiguous(),
            tiled_weight,
            tiled_bias,
            G=block.gates,
            H=block.hidden_size,
            K=block.input_size,
            STATES=block.inputs,
            TILES=tiles,
            SPACING=spacing(padded),
            BLOCK_H=features,
            BLOCK_K=PACKED_COLUMNS,
        )
    return tiled(padded, tiled_weight, tiled_bias, features)


def tiled(padded: Block, weight: Tensor, bias: Tensor | None, features: int) -> Tiled:
    """Weights that are in tiles already."""
    return Tiled(padded, weight, bias, features, spacing(padded))


def spacing(padded: Block) -> int:
    """Columns for each incoming state."""
    return -(-padded.input_size // ALIGNMENT) * ALIGNMENT


def untile_gradients(
    dweight: Tensor,
    dbias: Tensor | None,
    weight: Tensor,
    bias: Tensor | None,
    block: Block,
    padded: Block,
    features: int,
) -> tuple[Tensor, Tensor | None]:
    """The gradients of `weight` (S, G H, n K) and `bias` (S, G H), of parts that are to be summed.

    These stand as weights in tiles do: `dweight` (S, splits, C, n K), `dbias` (S, parts, C).
    """
    from prlstm.kernels.pack import unpack_gradients

    found = torch.empty_like(weight, memory_format=torch.contiguous_format)
    found_bias = None if bias is None else torch.empty_like(bias)
    seeds, splits, columns, _ = dweight.shape
    rows, width = weight.shape[1:]
    grid = -(-rows // UNPACKED_ROWS), -(-width // PACKED_COLUMNS), seeds
    if weight.numel():
        unpack_gradients[grid](
            dweight,
            splits,
            dbias,
            0 if dbias is None else dbias.shape[1],
            found,
            found_bias,
            G=block.gates,
            H=block.hidden_size,
            K=block.input_size,
            STATES=block.inputs,
            C=columns,
            PADDED_K=padded.input_size,
            FEATURES=features,
            BLOCK_M=UNPACKED_ROWS,
            BLOCK_K=PACKED_COLUMNS,
            BLOCK_P=SUMMED_PARTS,
        )
    return found, found_bias


def untile_weights(dweight: Tensor, block: Block, features: int) -> Tensor:
    """The gradient (S, C, n K) of weights in tiles as that of the weights (S, G H, n K).

    In plain PyTorch, for a block alone, whose gradients the compiler may look into.
    """
    tiles = -(-block.hidden_size // features)
    parts = dweight.view(dweight.shape[0], tiles, block.gates, features, dweight.shape[2])
    parts = parts.transpose(1, 2).flatten(2, 3)[:, :, : block.hidden_size]
    return parts.flatten(1, 2)


def untile_bias(dbias: Tensor, block: Block, features: int) -> Tensor:
    """The same for the bias: (S, C) to (S, G H)."""
    return untile_weights(dbias[..., None], block, features)[..., 0]
