"""The gradients of a sweep: down the tree first, then up, each level as a few launches.

Without what the forward pass could have kept, each level's gates are computed once more when
their turn comes.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from prlstm.kernels import launch
from prlstm.kernels.chunks import Chunks, merge_chunks, plain_chunks, weight_gradient
from prlstm.kernels.layout import PREFIXES, Layout
from prlstm.kernels.nodes import Nodes, compact
from prlstm.kernels.places import Rows, Shape
from prlstm.kernels.stages import Kept, Stages
from prlstm.kernels.sweep import merge_step
from prlstm.kernels.tiles import tile_for


class Gradients(NamedTuple):
    """Of all that went into a sweep; x has none unless it was asked for."""

    x: Tensor | None
    weights: list[Tensor]
    biases: list[Tensor]
    carried: list[Tensor]


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
        self.weights[block] = found if before is None else before.add_(found)

    def add_merges(
        self, nodes: Nodes, kept: Kept, dgates: Sequence[Tensor], steps: Sequence[int]
    ) -> None:
        """More merges: the compositions read nodes, the refinements what was kept between."""
        assert nodes.together is not None
        batch, device = nodes.prefixes[0].shape[1], dgates[0].device
        rows = batch * sum(nodes.layout.steps[k].length for k in steps)
        if rows == 0:
            return
        chunks = merge_chunks(nodes.layout, tuple(steps), batch, device)
        self.add(1, dgates[0], nodes.together[0], nodes.prefixes[0], chunks)
        for k, (gates, h) in enumerate(zip(dgates[1:], kept.h, strict=True)):
            self.add(k + 2, gates, h, h, plain_chunks(rows, device))

    def natural(self) -> tuple[list[Tensor], list[Tensor]]:
        """As the weights have their places, in their types; zero where there was no row."""
        weights, biases = [], []
        for block, weight in enumerate(self.stages.weights):
            found = self.weights.get(block)
            weights.append(
                torch.zeros_like(weight)
                if found is None
                else self.stages.natural_weight(block, found).to(weight.dtype)
            )
        for block, (bias, parts) in enumerate(zip(self.stages.biases, self.biases, strict=True)):
            biases.append(self.stages.natural_bias(block, parts.sum(1)).to(bias.dtype))
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
    needs_x: bool,
) -> Gradients:
    """Go back through a sweep; `given` holds the gradients of all nodes, and is used up.

    `blocks_given` says whether those of the blocks are there to begin with.
    """
    seeds, batch, length, _ = x.shape
    like = nodes.prefixes[1]
    sums = _Sums(stages, batch * length, [batch * step.length for step in layout.steps], like)
    longest = max((step.length for step in layout.steps), default=0)
    scratch = tuple(
        launch.empty(like, (seeds, batch * longest, stages.size), kind)
        for kind in (stages.operand, torch.float32)
    )

    def memory(rows: int) -> list[Tensor]:
        return [_rows(stages, like, rows, columns) for columns in stages.columns[1:]]

    every = [] if kept is None else memory(batch * layout.merges)
    adds = {
        level: blocks_given or _clear(layout, given, level) for level in range(len(layout.sizes))
    }
    numbers = range(len(layout.steps))
    for number in reversed(numbers):
        step = layout.steps[number]
        if step.is_up and (number + 1 == len(numbers) or not layout.steps[number + 1].is_up):
            _turn(layout, given)
        shape = Shape(seeds, batch, step.length)
        row, between, dgates = batch * step.row, kept, every
        if between is None:
            # the result is known; what was computed on the way is not
            row, between = 0, stages.between(like, shape.rows, gates=True)
            dgates = memory(shape.rows)
            aside = compact(scratch[0], 0, step.length), compact(scratch[1], 0, step.length)
            merge_step(stages, nodes, step, aside, between, 0, shape)
        stages.merge_backward(
            nodes.at(step.left), nodes.at(step.right),
            given.at(step.left), given.at(step.right), given.at(step.out), between, dgates,
            [sums.bias(block, number) for block in range(1, len(stages.weights))],
            (scratch[0], scratch[1]), shape, row,
            # a prefix is read by many; of two neighbours a prefix may have read the left one
            add=(adds[step.left.level] if step.is_up else True, blocks_given),
        )  # fmt: skip
        if kept is None:
            sums.add_merges(nodes, between, dgates, [number])
    if not any(step.is_up for step in layout.steps):
        _turn(layout, given)
    if kept is not None and layout.steps:
        sums.add_merges(nodes, kept, every, numbers)
    dx = _leaf_backward(stages, layout, x, nodes, gates, given, sums, needs_x)
    return Gradients(dx, *sums.natural(), _carried(layout, given, stages.hidden_size))


def _rows(stages: Stages, like: Tensor, rows: int, columns: int) -> Tensor:
    """Memory for `dgates`: products read whole tiles, and must not read those of the next seed."""
    spare = tile_for("weight", stages.arithmetic).products if stages.seeds > 1 else 0
    memory = launch.empty(like, (stages.seeds, rows + spare, columns), stages.operand)
    memory[:, rows:].zero_()
    return memory


def _clear(layout: Layout, given: Nodes, level: int) -> bool:
    """Whether prefixes read blocks of a level; then what they do not read is set to zero.

    They read blocks of even places alone, up to the last: the others have one parent, who puts
    its gradient there.
    """
    read = [s.right.first for s in layout.steps if not s.is_up and s.right.level == level]
    if not read and level not in dict(layout.from_blocks).values():
        return False
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
    layout: Layout,
    x: Tensor,
    nodes: Nodes,
    gates: Tensor | None,
    given: Nodes,
    sums: _Sums,
    needs_x: bool,
) -> Tensor | None:
    seeds, batch, length, size = x.shape
    shape, tiled, like = Shape(seeds, batch, length), stages.tiled[0], nodes.prefixes[1]
    if gates is None:
        gates = launch.empty(like, (seeds, shape.rows, tiled.columns), stages.operand)
        aside = [
            compact(launch.empty(like, (seeds, shape.rows, stages.size), kind), 0, length)
            for kind in (stages.operand, torch.float32)
        ]
        stages.leaf(x, (aside[0], aside[1]), gates)
    dgates = _rows(stages, like, shape.rows, tiled.columns)
    dh, dc = given.at(layout.leaves)
    launch.backward(Rows(gates, 0), dgates, [], dh, dc, [], sums.bias(0), tiled, shape)
    if shape.rows:
        sums.add(0, dgates, x, x, plain_chunks(shape.rows, x.device))
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
