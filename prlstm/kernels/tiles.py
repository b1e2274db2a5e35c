"""Which tiles the kernels work on: one small table, the place for a tuner to write to.

The number of rows chooses between two tiles and no more: a batch of a new length must not compile
anything anew.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import torch

# a matrix unit takes no fewer rows, columns or products than this
SMALLEST_BLOCK = 16
# features of a tile of the forward kernel, which the order of weights and gates follows
FEATURES = 32


@dataclass(frozen=True)
class Tile:
    """What one program computes, and how.

    `rows` by `features` values (of each gate, going forward), `products` terms of every sum at a
    time. Programs are numbered so that `group` tiles of rows share each tile of the weights while
    it is cached. With `ahead` the incoming c are read before the products, not after them.
    """

    rows: int
    features: int
    products: int
    group: int = 8
    warps: int = 4
    stages: int = 3
    ahead: bool = False


# up to so many rows do not fill a device: how long a program takes counts, not how many there are
FEW_ROWS = 1024
# the same for the gradients of states, which are wider
FEW_INPUT_ROWS = 2048
# from so many rows on, descriptors for all that is read and written are worth making
MANY_ROWS = 1 << 14

# Keyed by kernel and arithmetic of the products. The forward kernel goes by what it computes:
# "leaf", "refine", "compose", of 0, 1 and 2 incoming states, and "few" of them; "input" and
# "weight" are the products of the backward pass. A tuner assigns to an entry before the first call.
_HALF = {
    "leaf": Tile(128, FEATURES, 32),
    # two stages leave room for a third program beside two others
    "refine": Tile(128, FEATURES, 64, stages=2),
    "compose": Tile(128, FEATURES, 64),
    "refine few": Tile(32, FEATURES, 64, stages=4, ahead=True),
    "compose few": Tile(64, FEATURES, 64, stages=4, ahead=True),
    "input": Tile(128, 128, 64),
    "input few": Tile(64, 64, 128, stages=4),
    "weight": Tile(256, 128, 64, warps=8),
}
_TF32 = {
    "leaf": Tile(128, FEATURES, 32),
    "refine": Tile(128, FEATURES, 32),
    "compose": Tile(128, FEATURES, 32),
    "refine few": Tile(32, FEATURES, 32, stages=4, ahead=True),
    "compose few": Tile(32, FEATURES, 32, stages=4, ahead=True),
    "input": Tile(128, 128, 32, warps=8),
    "input few": Tile(32, 64, 64, stages=4),
    "weight": Tile(128, 64, 32),
}
_EXACT = {
    "leaf": Tile(32, FEATURES, 16),
    "refine": Tile(32, FEATURES, 16),
    "compose": Tile(32, FEATURES, 16),
    "refine few": Tile(32, FEATURES, 16, ahead=True),
    "compose few": Tile(32, FEATURES, 16, ahead=True),
    "input": Tile(64, 64, 16),
    "input few": Tile(64, 64, 16),
    "weight": Tile(64, 64, 16),
}
TILES: dict[tuple[str, str], Tile] = {
    (kernel, arithmetic): tile
    for arithmetic, table in {
        "bfloat16": _HALF,
        "float16": _HALF,
        "tf32": _TF32,
        "tf32x3": _EXACT,
        "ieee": _EXACT,
    }.items()
    for kernel, tile in table.items()
}
# the forward kernel, by the number of incoming states
BLOCKS = ("leaf", "refine", "compose")


def arithmetic(operand: torch.dtype, precision: str) -> str:
    """How products are computed, by its name in the table."""
    return precision if operand == torch.float32 else str(operand).removeprefix("torch.")


def features_for(hidden_size: int) -> int:
    """Features of a tile of the forward kernel: no more than a small state needs."""
    return min(FEATURES, block_for(hidden_size))


def tile_for(kernel: str, arithmetic: str) -> Tile:
    """The entry for a product of the backward pass."""
    return TILES[kernel, arithmetic]


def input_tile(arithmetic: str, rows: int) -> Tile:
    """The entry for the gradients of so many states."""
    return TILES["input few" if rows <= FEW_INPUT_ROWS else "input", arithmetic]


@lru_cache
def block_tile(states: int, arithmetic: str, hidden_size: int, rows: int) -> Tile:
    """The entry for the forward kernel, for so many states that come in and go out."""
    kernel = BLOCKS[states]
    if states and rows <= FEW_ROWS:
        kernel += " few"
    return replace(TILES[kernel, arithmetic], features=features_for(hidden_size))


def block_for(size: int) -> int:
    """The smallest block that holds `size`."""
    return max(SMALLEST_BLOCK, 1 << (size - 1).bit_length())
