"""The gradients of a sweep: down the tree first, then up, each level as a few launches.

Without what the forward pass could have kept, each level's gates are computed once more when
their turn comes.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from prlstm.kernels import launch
from prlstm.kernels.chunks import (
    Chunks,
    merge_chunks,
    plain_chunks,
    programs_of,
    weight_gradient,
)
from prlstm.kernels.layout import PREFIXES, Layout
from prlstm.kernels.nodes import Nodes, compact
from prlstm.kernels.places import Rows, Shape
from prlstm.kernels.stages import Kept, Pair, Stages
from prlstm.kernels.tables import (
    TableNodes,
    blocks_read,
    codes_of,
    looked_up_array,
    no_letters,
    pair_codes,
)
from prlstm.kernels.tiles import tile_for


class Gradients(NamedTuple):
    """Of all that went into a sweep; x has none unless it was asked for."""

    x: Tensor | None
    weights: list[Tensor]
    biases: list[Tensor]
    carried: list[Tensor]


class TablesBack(NamedTuple):
    """What blocks were looked up in: the ids (S, B, T), the tables, and memory for gradients."""

    ids: Tensor
    states: TableNodes
    gradients: TableNodes


class _Sums:
    """The gradients of all weights and biases, of every level one after the other."""

    def __init__(self, stages: Stages, leaves: int, merges: Sequence[int], like: Tensor) -> None:
        """For so many leaves, and merges of each step."""
        self.stages = stages
        self.weights: dict[int, Tensor] = {}
        each = [launch.parts(rows) for rows in merges]
        self.first_parts = [sum(each[:k]) for k in range(len(each))]
        # of each block, sums over some rows: a step adds its own
        parts = [launch.parts(leaves), *[sum(each)] * (len(stages.weights) - 1)]
        self.biases = [
            launch.empty(like, (stages.seeds, count, columns), torch.float32)
            for count, columns in zip(parts, stages.columns, strict=True)
            if stages.biases
        ]

    def bias(self, block: int, step: int | None = None) -> Rows | None:
        """Where the sums of one block, 0 the leaf, go that a step finds."""
        if not self.biases:
            return None
        return Rows(self.biases[block], 0 if step is None else self.first_parts[step])

    def add(self, block: int, dgates: Tensor, z: Tensor, prefixes: Tensor, chunks: Chunks) -> None:
        """More rows of one block."""
        stages = self.stages
        found = weight_gradient(
            dgates, z, prefixes, chunks, stages.tiled[block], precision=stages.precision
        )
        before = self.weights.get(block)
        if before is not None:
            found = before.sum(1, keepdim=True) + found.sum(1, keepdim=True)
        self.weights[block] = found

    def add_merges(
        self,
        nodes: Nodes,
        kept: Kept,
        dgates: Sequence[Tensor],
        steps: Sequence[int],
        tables: TableNodes | None = None,
        levels: Sequence[int] = (),
    ) -> None:
        """More merges, of steps and of levels of tables.

        The compositions read nodes, the refinements what was kept between.
        """
        assert nodes.together is not None
        batch, device = nodes.prefixes[0].shape[1], dgates[0].device
        rows = batch * sum(nodes.layout.steps[k].length for k in steps)
        of_tables = None if tables is None else tables.layout
        if of_tables is not None:
            rows += sum(of_tables.tables[level].entries for level in levels)
        if rows == 0:
            return
        chunks = merge_chunks(
            nodes.layout, tuple(steps), of_tables, tuple(levels), batch, self._programs(1), device
        )
        self.add(1, dgates[0], nodes.together[0], nodes.prefixes[0], chunks)
        for k, (gates, h) in enumerate(zip(dgates[1:], kept.h, strict=True)):
            self.add_rows(k + 2, gates, h, rows)

    def add_rows(self, block: int, dgates: Tensor, z: Tensor, rows: int) -> None:
        """More rows of one block, which stand one after the other."""
        self.add(block, dgates, z, z, plain_chunks(rows, self._programs(block), z.device))

    def _programs(self, block: int) -> int:
        stages = self.stages
        return programs_of(stages.tiled[block], stages.seeds, stages.precision)

    def natural(self) -> tuple[list[Tensor], list[Tensor]]:
        """As the weights have their places, in their types; zero where there was no row."""
        weights, biases = [], []
        for block, weight in enumerate(self.stages.weights):
            found, parts = self.weights.get(block), None
            if self.stages.biases:
                parts = self.biases[block]
            if found is None:
                dweight = torch.zeros_like(weight)
                dbias = torch.zeros_like(self.stages.biases[block]) if parts is not None else None
            else:
                dweight, dbias = self.stages.natural(block, found, parts)
            weights.append(dweight)
            biases += [] if dbias is None else [dbias]
        return weights, biases


def sweep_backward(
    stages: Stages,
    layout: Layout,
    x: Tensor,
    nodes: Nodes,
    kept: Kept | None,
    gates: Tensor | None,
    given: Nodes,
    *,
    blocks_given: bool,
    is_clear: bool,
    needs_x: bool,
    lookup: TablesBack | None = None,
) -> Gradients:
    """Go back through a sweep; `given` holds the gradients of all nodes, and is used up.

    `blocks_given` says whether those of the blocks are there to begin with, `is_clear` whether
    these are all zero. With a `lookup` x are the tokens of the first table.
    """
    batch = nodes.prefixes[0].shape[1]
    back = _Back(stages, layout, x.shape[1] * x.shape[2], nodes, kept, lookup)
    adds = {
        level: blocks_given or _clear(layout, given, level, is_clear=is_clear)
        for level in range(len(layout.sizes))
    }
    numbers = range(len(layout.steps))
    for number in reversed(numbers):
        step = layout.steps[number]
        if step.is_up and (number + 1 == len(numbers) or not layout.steps[number + 1].is_up):
            _turn(layout, given)
        # a prefix is read by many; of two neighbours a prefix may have read the left one
        add = (adds[step.left.level] if step.is_up else True, blocks_given)
        between, dgates = back.merge(
            number, nodes.at(step.left), nodes.at(step.right), given.at(step.left),
            given.at(step.right), given.at(step.out), Shape(stages.seeds, batch, step.length),
            batch * step.row, add,
        )  # fmt: skip
        if kept is None:
            back.sums.add_merges(nodes, between, dgates, [number])
        # what was computed once more makes room for the next level
        del between, dgates
    if not any(step.is_up for step in layout.steps):
        _turn(layout, given)
    dleaves, levels = given.at(layout.leaves), range(0)
    if lookup is not None:
        dleaves = lookup.gradients.entries(0)
        levels = range(1, len(lookup.states.layout.tables))
        _tables_backward(back, given, lookup)
    if kept is not None:
        tables = None if lookup is None else lookup.states
        back.sums.add_merges(nodes, kept, back.every, numbers, tables, levels)
    dx = _leaf_backward(stages, x, gates, dleaves, back.sums, needs_x)
    return Gradients(dx, *back.sums.natural(), _carried(layout, given, stages.hidden_size))


class _Back:
    """Memory for going back through merges, one step after the other."""

    def __init__(
        self,
        stages: Stages,
        layout: Layout,
        leaves: int,
        nodes: Nodes,
        kept: Kept | None,
        lookup: TablesBack | None,
    ) -> None:
        self.stages, self.nodes, self.kept = stages, nodes, kept
        self.like, batch = nodes.prefixes[1], nodes.prefixes[0].shape[1]
        tables = () if lookup is None else lookup.states.layout.tables[1:]
        merges = [batch * step.length for step in layout.steps]
        merges += [table.entries for table in tables]
        self.sums = _Sums(stages, leaves, merges, self.like)
        h, c = (
            launch.empty(self.like, (stages.seeds, max(merges, default=0), stages.size), kind)
            for kind in (stages.operand, torch.float32)
        )
        self.scratch = h, c
        self.every = [] if kept is None else self._dgates(sum(merges))

    def merge(
        self,
        number: int,
        left: Pair,
        right: Pair,
        dleft: Pair,
        dright: Pair,
        dout: Pair,
        shape: Shape,
        row: int,
        add: tuple[bool, bool],
    ) -> tuple[Kept, list[Tensor]]:
        """Through the merges of one step; gives what was kept of them, and the gates' gradients."""
        stages, between, dgates = self.stages, self.kept, self.every
        if between is None:
            # the result is known; what was computed on the way is not
            row, between = 0, stages.between(self.like, shape.rows, gates=True)
            dgates = self._dgates(shape.rows)
            aside = (
                compact(self.scratch[0], 0, shape.length),
                compact(self.scratch[1], 0, shape.length),
            )
            stages.merge(left, right, aside, between, shape, 0)
        dbiases = [self.sums.bias(block, number) for block in range(1, len(stages.weights))]
        stages.merge_backward(
            left, right, dleft, dright, dout, between, dgates, dbiases, self.scratch, shape, row,
            add=add,
        )  # fmt: skip
        return between, dgates

    def _dgates(self, rows: int) -> list[Tensor]:
        return [_rows(self.stages, self.like, rows, columns) for columns in self.stages.columns[1:]]


def _tables_backward(back: _Back, given: Nodes, lookup: TablesBack) -> None:
    """From what came for looked-up blocks to the gradients of the first table."""
    layout, tables, gradients = given.layout, lookup.states, lookup.gradients
    seeds, batch, device = back.stages.seeds, given.prefixes[0].shape[1], lookup.ids.device
    row, levels = batch * layout.merges, range(len(tables.layout.tables))
    for level in reversed(levels):
        add = False
        if level + 1 in levels:
            codes = pair_codes(tables.layout, level + 1, device)
            shape = Shape(seeds, 1, codes.shape[1])
            gradients.sum(level, codes, gradients.neighbours(level + 1), shape, add=False)
            add = True
        blocks = blocks_read(layout, tables.layout, level)
        if blocks:
            shape = Shape(seeds, batch, len(blocks))
            if level > tables.layout.top:
                codes = no_letters(shape.rows, device)
            else:
                codes = codes_of(lookup.ids, tables.layout.tables[level], blocks)
            places = given.at(looked_up_array(layout, level, blocks))
            gradients.sum(level, codes, places, shape, add=add)
        if level:
            number = len(layout.steps) + level - 1
            shape = Shape(seeds, 1, tables.layout.tables[level].entries)
            between, dgates = back.merge(
                number, *tables.pairs(level), *gradients.pairs(level), gradients.entries(level),
                shape, row + tables.layout.row(level), (False, False),
            )  # fmt: skip
            if back.kept is None:
                back.sums.add_merges(back.nodes, between, dgates, [], tables, [level])
            del between, dgates


def _rows(stages: Stages, like: Tensor, rows: int, columns: int) -> Tensor:
    """Memory for `dgates`: products read whole tiles, and must not read those of the next seed."""
    spare = tile_for("weight", stages.arithmetic).products if stages.seeds > 1 else 0
    memory = launch.empty(like, (stages.seeds, rows + spare, columns), stages.operand)
    memory[:, rows:].zero_()
    return memory


def _clear(layout: Layout, given: Nodes, level: int, *, is_clear: bool) -> bool:
    """Whether prefixes read blocks of a level; then what they do not read is set to zero.

    They read blocks of even places alone, up to the last: the others have one parent, who puts
    its gradient there, but where blocks above are looked up.
    """
    if level + 1 in layout.partly and not is_clear:
        for t in given.pair(level):
            t[:, :, layout.read_upwards(level) :].zero_()
    read = [s.right.first for s in layout.steps if not s.is_up and s.right.level == level]
    if not read and level not in dict(layout.from_blocks).values():
        return False
    if is_clear:
        return True
    stop = min([*read, layout.counts[level]])
    for t in given.pair(level):
        t[:, :, 0:stop:2].zero_()
    return True


def _turn(layout: Layout, given: Nodes) -> None:
    """What came for a prefix that is a block comes for the block."""
    for slot, level in layout.from_blocks:
        for prefix, block in zip(given.prefixes, given.pair(level), strict=True):
            block[:, :, 0].add_(prefix[:, :, slot])


def _leaf_backward(
    stages: Stages,
    x: Tensor,
    gates: Tensor | None,
    dleaves: Pair,
    sums: _Sums,
    needs_x: bool,
) -> Tensor | None:
    """The gradients of the leaf's weights, and of tokens `x` (S, B, T, D) if that `needs_x`."""
    seeds, batch, length, size = x.shape
    shape, tiled, like = Shape(seeds, batch, length), stages.tiled[0], dleaves[1].tensor
    if gates is None:
        gates = launch.empty(like, (seeds, shape.rows, tiled.columns), stages.operand)
        aside = [
            compact(launch.empty(like, (seeds, shape.rows, stages.size), kind), 0, length)
            for kind in (stages.operand, torch.float32)
        ]
        stages.leaf(x, (aside[0], aside[1]), gates)
    dgates = _rows(stages, like, shape.rows, tiled.columns)
    launch.backward(Rows(gates, 0), dgates, [], *dleaves, [], sums.bias(0), tiled, shape)
    if shape.rows:
        sums.add_rows(0, dgates, x, shape.rows)
    if not needs_x:
        return None
    dx = launch.empty(like, (seeds, shape.rows, size))
    launch.input_gradient(
        Rows(dgates, 0), tiled, [compact(dx, 0, length)], shape, precision=stages.precision
    )
    return dx.view(x.shape)


def _carried(layout: Layout, given: Nodes, hidden_size: int) -> list[Tensor]:
    """The gradients of what an earlier part of the stream left, in its order."""
    places = [(level, 0) for level in layout.waiting]
    places += [(PREFIXES, slot) for slot, _ in layout.from_folds]
    return [
        t[:, :, place : place + 1, :hidden_size].to(torch.float32, copy=True).contiguous()
        for level, place in places
        for t in given.pair(level)
    ]
