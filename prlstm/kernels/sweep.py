"""One sweep over a tree of LSTM states, up and down: a few launches for every level."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from prlstm.kernels import launch
from prlstm.kernels.layout import Layout, Step
from prlstm.kernels.nodes import Nodes
from prlstm.kernels.places import Entries, Shape, States
from prlstm.kernels.stages import Kept, Pair, Stages
from prlstm.kernels.tables import (
    TableNodes,
    are_sums_worth_it,
    blocks_read,
    codes_of,
    fill_tables,
    looked_up_array,
    no_letters,
)


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
    """All blocks of a level, which are looked up by their merges: `codes` (S, B, blocks)."""

    level: int
    codes: Tensor
    entries: Entries


def sweep_blocks(
    stages: Stages,
    layout: Layout,
    tables: TableNodes,
    x: Tensor,
    ids: Tensor,
    carried: Sequence[Tensor],
    nodes: Nodes,
    kept: Kept | None = None,
    gates: Tensor | None = None,
) -> None:
    """The same for ids (S, B, T), whose blocks up to a level are looked up.

    `x` (S, 1, V, D) are the tokens of the first table.
    """
    nodes.bring(carried)
    batch = ids.shape[1]
    # without gradients less is kept, and less is needed
    is_forward = nodes.together is None
    row = batch * layout.merges
    fill_tables(stages, tables, x, gates, kept, row, needs_pairs=not is_forward)
    top, lookup = tables.layout.top, None
    for level in range(top + 1):
        blocks = blocks_read(layout, tables.layout, level)
        if not blocks:
            continue
        codes = codes_of(ids, tables.layout.tables[level], blocks)
        waiting, is_merged = level in layout.waiting, False
        if level == top and is_forward and not waiting:
            lookup = _lookup(stages, layout, tables, codes)
            is_merged = lookup is None and layout.counts[level] > 1
        if is_forward and not waiting and not is_merged and _needs_last_alone(layout, level):
            last = codes[:, :, -1:].contiguous()
            states = [launch.empty(t, (*codes.shape[:2], 1, stages.size)) for t in nodes.prefixes]
            tables.look_up(level, last, _places(states), Shape(*last.shape))
            nodes.put_last(level, states[0], states[1])
        else:
            nodes.begin(level)
            places = nodes.at(looked_up_array(layout, level, blocks))
            tables.look_up(level, codes, places, Shape(*codes.shape))
    merge_nodes(stages, layout, nodes, kept, lookup, tables)


def _needs_last_alone(layout: Layout, level: int) -> bool:
    read = level in (block for _, block in layout.from_blocks)
    return layout.needs_last_alone(level) and not read


def _lookup(stages: Stages, layout: Layout, tables: TableNodes, codes: Tensor) -> Lookup | None:
    """The blocks of the highest table, if their merges do not need them themselves."""
    level, (seeds, batch, _) = tables.layout.top, codes.shape
    entries, merges = tables.layout.tables[level].entries, batch * (layout.counts[level] // 2)
    if not are_sums_worth_it(entries, merges, seeds):
        return None
    return Lookup(level, codes, tables.to_merge(stages, level))


def _places(states: Sequence[Tensor]) -> Pair:
    h, c = map(States.of, states)
    return h, c


def merge_nodes(
    stages: Stages,
    layout: Layout,
    nodes: Nodes,
    kept: Kept | None = None,
    lookup: Lookup | None = None,
    tables: TableNodes | None = None,
) -> None:
    """Merge, level by level, the blocks that are there or that are looked up.

    Those up to the top of `tables` are there.
    """
    seeds, batch = nodes.prefixes[0].shape[:2]
    longest = max((step.length for step in layout.steps), default=0)
    like = nodes.prefixes[0]
    between = stages.between(like, batch * longest, gates=False) if kept is None else kept
    for level in range(tables.layout.top + 1 if tables is not None else 1):
        _first_prefixes(layout, nodes, level)
    for step in layout.steps:
        if step.is_up:
            nodes.begin(step.out.level)
            if tables is not None and step.out.level in layout.partly:
                _look_up_empty(layout, tables, nodes, step.out.level)
        row = 0 if kept is None else batch * step.row
        shape, out = Shape(seeds, batch, step.length), nodes.at(step.out)
        if lookup is not None and step.is_up and step.left.level == lookup.level:
            stages.merge_entries(lookup.entries, lookup.codes, out, between, shape)
        else:
            merge_step(stages, nodes, step, out, between, row, shape)
        if step.is_up:
            _first_prefixes(layout, nodes, step.out.level)
            nodes.end(step.left.level)


def _look_up_empty(layout: Layout, tables: TableNodes, nodes: Nodes, level: int) -> None:
    """Put the blocks without a letter of a level that is not looked up whole."""
    blocks, (seeds, batch) = blocks_read(layout, tables.layout, level), nodes.prefixes[0].shape[:2]
    shape = Shape(seeds, batch, len(blocks))
    codes = no_letters(shape.rows, nodes.prefixes[0].device)
    tables.look_up(level, codes, nodes.at(looked_up_array(layout, level, blocks)), shape)


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
