"""Weights as the kernels read them: in tiles, padded with zeros, in the type of the products.

For every tile of BLOCK features stand the rows of all G gates one after the other: (S, tiles, G,
BLOCK, columns), where the columns of each incoming state are padded too. Features that are
padding keep c = 0 and h = 0 whatever is merged, so nobody needs to look after them.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

# rows of a matrix that is read by a descriptor begin at multiples of 16 bytes
ALIGNMENT = 16


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


class Tiled(NamedTuple):
    """The weights of a block: `weight` (S * C, n * spacing), `bias` (S, C); C is tiles * G * BLOCK.

    `spacing` is the number of columns for each incoming state.
    """

    block: Block
    weight: Tensor
    bias: Tensor | None
    # features of a tile
    features: int
    spacing: int

    @property
    def columns(self) -> int:
        """C, the columns of what the gates are made of."""
        return self.block.columns(self.features)


def tile_weights(
    weight: Tensor,
    bias: Tensor | None,
    block: Block,
    padded: Block,
    features: int,
    operand: torch.dtype,
) -> Tiled:
    """`weight` (S, G H, n K) and `bias` (S, G H), as a block of the padded sizes reads them."""
    seeds, gates = weight.shape[0], block.gates
    tiles = -(-padded.hidden_size // features)
    spacing = -(-padded.input_size // ALIGNMENT) * ALIGNMENT
    grown = (0, spacing - block.input_size, 0, 0, 0, tiles * features - block.hidden_size)
    parts = weight.detach().view(seeds, gates, block.hidden_size, block.inputs, block.input_size)
    columns = block.inputs * spacing
    parts = _padded(parts, grown).reshape(seeds, gates, tiles, features, columns).transpose(1, 2)
    rows = parts.to(operand, memory_format=torch.contiguous_format).reshape(-1, columns)
    if bias is not None:
        parts = bias.detach().view(seeds, gates, block.hidden_size)
        parts = _padded(parts, grown[4:]).reshape(seeds, gates, tiles, features)
        bias = parts.transpose(1, 2).reshape(seeds, -1).contiguous()
    return Tiled(padded, rows, bias, features, spacing)


def _padded(t: Tensor, grown: tuple[int, ...]) -> Tensor:
    return F.pad(t, grown) if any(grown) else t


def untile_weights(dweight: Tensor, block: Block, padded: Block, features: int) -> Tensor:
    """The gradient (S, C, n K) of weights in tiles as that of the weights (S, G H, n K)."""
    tiles = -(-padded.hidden_size // features)
    parts = dweight.view(-1, tiles, block.gates, features, block.inputs, padded.input_size)
    parts = parts.transpose(1, 2).flatten(2, 3)
    parts = parts[:, :, : block.hidden_size, :, : block.input_size]
    return parts.reshape(-1, block.gates * block.hidden_size, block.inputs * block.input_size)


def untile_bias(dbias: Tensor, block: Block, padded: Block, features: int) -> Tensor:
    """The same for the bias: (S, C) to (S, G H)."""
    tiles = -(-padded.hidden_size // features)
    parts = dbias.view(-1, tiles, block.gates, features).transpose(1, 2).flatten(2, 3)
    return parts[:, :, : block.hidden_size].reshape(-1, block.gates * block.hidden_size)
