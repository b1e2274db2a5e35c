"""Which tiles the forward kernel works on: one small table, the place for a tuner to write to."""

from dataclasses import dataclass

# a matrix unit takes no fewer rows, columns or products than this
SMALLEST_BLOCK = 16


@dataclass(frozen=True)
class Tile:
    """What one program computes, and how.

    `rows` by `features` values of each gate, `products` terms of every sum at a time. Programs
    are numbered so that `group` tiles of rows share each tile of the weights while it is cached.
    """

    rows: int
    features: int
    products: int
    group: int = 8
    warps: int = 4
    stages: int = 3


# Keyed by the arithmetic of the products and a power of two that the hidden size is not above;
# greater hidden sizes use the greatest. A tuner assigns to an entry before the first call.
TILES: dict[tuple[str, int], Tile] = {
    ("bfloat16", 32): Tile(64, 32, 32),
    ("bfloat16", 256): Tile(128, 32, 32, stages=4),
    ("float16", 32): Tile(64, 32, 32),
    ("float16", 256): Tile(128, 32, 32, stages=4),
    ("ieee", 256): Tile(64, 32, 16),
    ("tf32", 256): Tile(128, 32, 32),
    ("tf32x3", 256): Tile(64, 32, 32),
}


def tile_for(arithmetic: str, hidden_size: int, input_size: int) -> Tile:
    """The entry for these sizes, its blocks no greater than the sizes need.

    `input_size` is that of one incoming state. The number of rows has no say: a batch of a new
    length must not compile anything anew.
    """
    bounds = [bound for kind, bound in TILES if kind == arithmetic]
    bound = min((b for b in bounds if b >= hidden_size), default=max(bounds))
    entry = TILES[arithmetic, bound]
    return Tile(
        entry.rows,
        min(entry.features, block_for(hidden_size)),
        min(entry.products, block_for(input_size)),
        entry.group,
        entry.warps,
        entry.stages,
    )


def block_for(size: int) -> int:
    """The smallest block that holds `size`."""
    return max(SMALLEST_BLOCK, 1 << (size - 1).bit_length())
