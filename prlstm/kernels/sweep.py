"""One sweep over a tree of LSTM states, up and down: a few launches for every level."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from prlstm.kernels import launch
from prlstm.kernels.layout import Layout, Step
from prlstm.kernels.nodes import Nodes
from prlstm.kernels.places import Shape, States
from prlstm.kernels.stages import Kept, Stages


def sweep_nodes(
    stages: Stages,
    layout: Layout,
    x: Tensor,
    carried: Sequence[Tensor],
    nodes: Nodes,
    kept: Kept | None = None,
    gates: Tensor | None = None,
) -> None:
    """Fill `nodes`, from tokens `x` (S, B, T, D) and what an earlier part of the stream left.

    What the backward pass needs besides goes to `kept` and, of the leaves, to `gates`.
    """
    nodes.bring(carried)
    nodes.begin(0)
    stages.leaf(x, nodes.at(layout.leaves), gates)
    merge_nodes(stages, layout, nodes, kept)


class Lookup(NamedTuple):
    """Leaves whose c are looked up: `codes` (S, B, T) in `c` (S, V, H); `h` (S, B, T, H) are not.

    All programs would read the few entries of h from one part of the cache.
    """

    codes: Tensor
    c: Tensor
    h: Tensor


def sweep_codes(
    stages: Stages, layout: Layout, codes: Tensor, table: tuple[Tensor, Tensor], nodes: Nodes
) -> None:
    """Fill `nodes`, from leaves `codes` (S, B, T) of a table: h and c (S, V, H)."""
    if layout.needs_last_alone(0) and 0 not in [level for _, level in layout.from_blocks]:
        seeds, batch, _ = codes.shape
        h = launch.empty(table[0], (seeds, batch, layout.sizes[0], stages.size))
        launch.look_up(table[0], codes, h)
        ends = [launch.empty(t, (seeds, batch, 1, stages.size)) for t in table]
        for entries, end in zip(table, ends, strict=True):
            launch.look_up(entries, codes[:, :, -1:].contiguous(), end)
        nodes.put_last(0, ends[0], ends[1])
        merge_nodes(stages, layout, nodes, lookup=Lookup(codes, table[1], h))
    else:
        nodes.begin(0)
        for entries, level in zip(table, nodes.pair(0), strict=True):
            launch.look_up(entries, codes, level)
        merge_nodes(stages, layout, nodes)


def merge_nodes(
    stages: Stages,
    layout: Layout,
    nodes: Nodes,
    kept: Kept | None = None,
    lookup: Lookup | None = None,
) -> None:
    """Merge, level by level, the leaves that are there or that are looked up."""
    seeds, batch = nodes.prefixes[0].shape[:2]
    longest = max((step.length for step in layout.steps), default=0)
    like = nodes.prefixes[0]
    between = stages.between(like, batch * longest, gates=False) if kept is None else kept
    _first_prefixes(layout, nodes, 0)
    for step in layout.steps:
        if step.is_up:
            nodes.begin(step.out.level)
        row = 0 if kept is None else batch * step.row
        shape, out = Shape(seeds, batch, step.length), nodes.at(step.out)
        if lookup is not None and step.left.level == 0 and step.is_up:
            _merge_looked_up(stages, lookup, out, between, shape)
        else:
            merge_step(stages, nodes, step, out, between, row, shape)
        if step.is_up:
            _first_prefixes(layout, nodes, step.out.level)
            nodes.end(step.left.level)


def _merge_looked_up(
    stages: Stages, lookup: Lookup, out: tuple[States, States], between: Kept, shape: Shape
) -> None:
    """The merges of neighbouring leaves."""
    h, c = lookup.h, lookup.c
    size, entry = h.shape[-1], States(c, (c.stride(0), 0, c.stride(1), 0, 0))
    left, right = (
        States(h, (h.stride(0), h.stride(1), 2 * size, j * size, j * size)) for j in range(2)
    )
    stages.merge((left, entry), (right, entry), out, between, shape, codes=lookup.codes)


def merge_step(
    stages: Stages,
    nodes: Nodes,
    step: Step,
    out: tuple[States, States],
    between: Kept,
    row: int,
    shape: Shape,
) -> None:
    """The merges of one level, to `out`; what stands between stages from row `row` on."""
    stages.merge(nodes.at(step.left), nodes.at(step.right), out, between, shape, row)


def _first_prefixes(layout: Layout, nodes: Nodes, level: int) -> None:
    """The first block of a level is a prefix itself."""
    for slot, source in layout.from_blocks:
        if source == level:
            for prefix, block in zip(nodes.prefixes, nodes.pair(level), strict=True):
                prefix[:, :, slot].copy_(block[:, :, 0])
