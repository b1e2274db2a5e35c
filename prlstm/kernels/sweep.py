"""One sweep over a tree of LSTM states, up and down: a few launches for every level."""

from collections.abc import Sequence

from torch import Tensor

from prlstm.kernels.launch import Shape, States
from prlstm.kernels.layout import Layout, Step
from prlstm.kernels.nodes import Nodes
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


def merge_nodes(stages: Stages, layout: Layout, nodes: Nodes, kept: Kept | None = None) -> None:
    """Merge, level by level, the leaves that are there."""
    seeds, batch = nodes.prefixes[0].shape[:2]
    longest = max((step.length for step in layout.steps), default=0)
    like = nodes.prefixes[0]
    between = stages.between(like, batch * longest, gates=False) if kept is None else kept
    _first_prefixes(layout, nodes, 0)
    for step in layout.steps:
        if step.is_up:
            nodes.begin(step.out.level)
        row = 0 if kept is None else batch * step.row
        shape = Shape(seeds, batch, step.length)
        merge_step(stages, nodes, step, nodes.at(step.out), between, row, shape)
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
