"""One sweep over a tree of LSTM states, up and down: a few launches for every level."""

from collections.abc import Sequence

from torch import Tensor

from prlstm.kernels.launch import look_up
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


def sweep_codes(
    stages: Stages, layout: Layout, codes: Tensor, table: tuple[Tensor, Tensor], nodes: Nodes
) -> None:
    """Fill `nodes`, from leaves `codes` (S, B, T) of a table: h and c (S, V, H).

    Where no prefix needs the c of more leaves than the last, the first level looks them up itself.
    (It does not look up h: all programs would read the few entries from one part of the cache.)
    """
    is_prefix = 0 in [level for _, level in layout.from_blocks]
    nodes.begin(0)
    h, c = nodes.pair(0)
    look_up(table[0], codes, h)
    if layout.needs_last_alone(0) and not is_prefix:
        look_up(table[1], codes[:, :, -1:].contiguous(), c[:, :, codes.shape[2] - 1 :])
        merge_nodes(stages, layout, nodes, lookup=(codes, table[1]))
    else:
        look_up(table[1], codes, c)
        merge_nodes(stages, layout, nodes)


def merge_nodes(
    stages: Stages,
    layout: Layout,
    nodes: Nodes,
    kept: Kept | None = None,
    lookup: tuple[Tensor, Tensor] | None = None,
) -> None:
    """Merge, level by level, the leaves that are there; with `lookup` their c are in a table."""
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
            codes, table = lookup
            entry = States(table, (table.stride(0), 0, table.stride(1), 0, 0))
            index = States(codes, (codes.stride(0), codes.stride(1), 2, 0, 0))
            h_left, h_right = nodes.at(step.left)[0], nodes.at(step.right)[0]
            stages.merge((h_left, entry), (h_right, entry), out, between, shape, index=index)
        else:
            merge_step(stages, nodes, step, out, between, row, shape)
        if step.is_up:
            _first_prefixes(layout, nodes, step.out.level)
            nodes.end(step.left.level)


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
