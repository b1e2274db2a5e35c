"""The gradient of a weight as one product over the rows of many levels.

The rows of all levels are cut into splits of about one size, each a list of chunks that lie
within one level. A program sums the rows of one split in order; the splits are summed after that.
The cuts depend on the shapes alone, so equal inputs give equal bits.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from prlstm.kernels import launch
from prlstm.kernels.layout import PREFIXES, Array, Layout
from prlstm.kernels.tables import TableLayout
from prlstm.kernels.tiles import Tile, arithmetic, block_for, tile_for
from prlstm.kernels.weights import Tiled, descriptor
from prlstm.tree.constants import kept

# the most splits of a product, the fewest rows that are worth one, and from how many rows on there
# are as many as may be
SPLITS, LEAST_ROWS, MANY_ROWS = 32, 256, 1 << 16
# programs that fill a device twice: with fewer rows there are no more of them, since every split is
# written and read once more
PROGRAMS = 264


class Segment(NamedTuple):
    """The rows of one level: `length` for each row of the batch, from row `row` of dgates on.

    Of the left and the right states, counted in states: the strides of batch and state, the place
    that strides count from, the place of the first.
    """

    row: int
    rows: int
    length: int
    in_prefixes: bool
    left: tuple[int, int, int, int]
    right: tuple[int, int, int, int]


class Chunks(NamedTuple):
    """Segments cut up, on the device of the product."""

    fields: Tensor
    # the first chunk of each split, and one more
    bounds: Tensor

    @property
    def splits(self) -> int:
        """How many."""
        return self.bounds.shape[0] - 1


@kept
def merge_chunks(
    layout: Layout,
    steps: tuple[int, ...],
    tables: TableLayout | None,
    levels: tuple[int, ...],
    batch: int,
    programs: int,
    device: torch.device,
) -> Chunks:
    """The rows of these steps of a layout, then those of these levels of tables.

    Tables stand behind all blocks, and their rows behind those of all steps. The product has so
    many programs for each split.
    """
    first = layout.steps[steps[0]].row if steps else 0

    def where(array: Array) -> tuple[int, int, int, int]:
        if array.level == PREFIXES:
            states, base = layout.slots, 0
        else:
            states, base = layout.sizes[array.level], batch * layout.offsets[array.level]
        return states, array.step, base + array.start, base + array.first

    segments = [
        Segment(
            batch * (step.row - first),
            batch * step.length,
            step.length,
            step.left.level == PREFIXES,
            where(step.left),
            where(step.right),
        )
        for step in (layout.steps[k] for k in steps)
    ]
    row = sum(segment.rows for segment in segments)
    for level in levels:
        assert tables is not None
        entries = tables.tables[level].entries
        place = batch * layout.states + tables.pairs(level)
        left, right = (0, 2, place, place), (0, 2, place + 1, place + 1)
        segments.append(Segment(row, entries, entries, False, left, right))
        row += entries
    return _cut(segments, programs, device)


@kept
def plain_chunks(rows: int, programs: int, device: torch.device) -> Chunks:
    """Rows that stand one after the other."""
    place = (0, 1, 0, 0)
    return _cut([Segment(0, rows, rows, False, place, place)], programs, device)


def _cut(segments: Sequence[Segment], programs: int, device: torch.device) -> Chunks:
    total = sum(segment.rows for segment in segments)
    most = SPLITS if total >= MANY_ROWS else min(SPLITS, -(-PROGRAMS // programs))
    splits = max(1, min(most, total // LEAST_ROWS))
    each = -(-total // splits)
    fields: list[list[int]] = []
    bounds = [0]
    done = 0
    for segment in segments:
        skip = 0
        while skip < segment.rows:
            rows = min(segment.rows - skip, each * len(bounds) - done)
            here = [segment.row + skip, rows, skip, segment.length, int(segment.in_prefixes)]
            fields.append([*here, *segment.left, *segment.right])
            skip += rows
            done += rows
            if done == each * len(bounds) and done < total:
                bounds.append(len(fields))
    bounds.append(len(fields))
    kind = torch.int32
    return Chunks(
        torch.tensor(fields, dtype=kind, device=device),
        torch.tensor(bounds, dtype=kind, device=device),
    )


def programs_of(weights: Tiled, seeds: int, precision: str) -> int:
    """How many programs one split of the product for a weight has."""
    tile = tile_for("weight", arithmetic(weights.weight.dtype, precision))
    return seeds * _tiles(weights, tile, _width(weights, tile))


def _width(weights: Tiled, tile: Tile) -> int:
    return min(tile.features, block_for(weights.block.input_size))


def _tiles(weights: Tiled, tile: Tile, width: int) -> int:
    sizes = weights.block
    return -(-weights.columns // tile.rows) * sizes.inputs * -(-sizes.input_size // width)


def weight_gradient(
    dgates: Tensor,
    blocks: Tensor,
    prefixes: Tensor,
    chunks: Chunks,
    weights: Tiled,
    *,
    precision: str,
) -> Tensor:
    """`dgates.T @ z`, over rows (S, R, C), in parts that are to be summed: (S, splits, C, n K).

    The incoming h are in `blocks` or `prefixes` (S, ..., K), where the chunks say.
    """
    sizes, (seeds, rows, columns) = weights.block, dgates.shape
    tile = tile_for("weight", arithmetic(dgates.dtype, precision))
    width, splits = _width(weights, tile), chunks.splits
    shape = (seeds, splits, columns, sizes.inputs * sizes.input_size)
    dweight = launch.empty(dgates, shape, torch.float32)
    tiles = _tiles(weights, tile, width)
    launch.gradients(dgates).weight_gradient[tiles, splits, seeds](
        descriptor(dgates.view(-1, columns), (tile.products, tile.rows)),
        rows,
        blocks,
        blocks[0].numel() // sizes.input_size,
        prefixes,
        prefixes[0].numel() // sizes.input_size,
        chunks.fields,
        chunks.bounds,
        dweight,
        splits,
        C=columns,
        K=sizes.input_size,
        STATES=sizes.inputs,
        BLOCK_M=tile.rows,
        BLOCK_N=width,
        BLOCK_K=tile.products,
        PRECISION=precision,
        FIELDS=chunks.fields.shape[1],
        num_warps=tile.warps,
        num_stages=tile.stages,
    )
    return dweight
