"""A whole sweep as an operator of PyTorch: autograd, vmap, the compiler and autocast know it.

Inside, x is (S, B, T, D) and states are (S, B, states, H): S seeds with weights of their own.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from prlstm.kernels import launch
from prlstm.kernels.backward import TablesBack
from prlstm.kernels.backward import sweep_backward as go_back
from prlstm.kernels.layout import Layout, lay_out
from prlstm.kernels.nodes import Nodes
from prlstm.kernels.stages import Kept, Stages
from prlstm.kernels.sweep import sweep_blocks, sweep_nodes
from prlstm.kernels.tables import TableLayout, TableNodes, lay_out_tables
from prlstm.tree import Words

# What a sweep leaves behind: prefixes and the blocks that wait; prefixes and all blocks; or these
# and what the backward pass needs of the gates.
LAST, NODES, GATES = "last", "nodes", "gates"
# gradients of so many bytes are cleared at once, sooner than in several places where it is needed
CLEARED = 1 << 26


class Blueprint(NamedTuple):
    """What a sweep computes: where all nodes stand, and the tables that ids are looked up in."""

    layout: Layout
    tables: TableLayout | None
    batch: int
    # tokens that are leaves, of a row of x
    leaves: int

    @property
    def states(self) -> int:
        """Blocks of a seed, and what tables hold."""
        return self.batch * self.layout.states + (self.tables.states if self.tables else 0)

    @property
    def merges(self) -> int:
        """Merges of a seed."""
        return self.batch * self.layout.merges + (self.tables.merges if self.tables else 0)


def _blueprint(x: Tensor, ids: Tensor | None, spelling: list[int], at: list[int]) -> Blueprint:
    """Of tokens x (S, B, T, D), or of ids (S, B, T) and the tokens x of the first table.

    `spelling` is the number of letters, the length of all words or -1, the highest level that may
    be looked up, and the most entries that a table may have; `at` is the first position that is
    read, and how many leaves came before.
    """
    start, count = at
    if ids is None:
        layout = lay_out(int(x.shape[2]), start, count)
        # the compiler's number of rows stays what it is: one program serves all
        rows = x.shape[1]
        return Blueprint(layout, None, rows, rows * int(x.shape[2]))
    (seeds, rows, tokens), (letters, length, *most) = ids.shape, spelling
    words = Words(letters, None if length < 0 else length)
    tables = lay_out_tables(words, int(tokens), count, rows, int(seeds), *most)
    layout = lay_out(int(tokens), start, count, tables.top, tables.shared)
    return Blueprint(layout, tables, rows, tables.tables[0].entries)


@torch.library.custom_op("prlstm::sweep_forward", mutates_args=())
def sweep_forward(
    x: Tensor,
    ids: Tensor | None,
    weights: list[Tensor],
    biases: list[Tensor],
    carried: list[Tensor],
    spelling: list[int],
    at: list[int],
    operand: torch.dtype,
    precision: str,
    keep: str,
) -> list[Tensor]:
    """H and c of the prefixes (S, B, slots, H); then what `keep` says.

    That is, as `prlstm.kernels.layout` has it: h and c of every block that waits, (S, B, 1, H);
    or of all blocks, (S, B * blocks, H), and with gates what `_memory` lists. The arguments are
    those of `_blueprint`, the weights, and what an earlier part of the stream left.
    """
    drawn = _blueprint(x, ids, spelling, at)
    stages = Stages(weights, biases, operand, precision)
    layout = drawn.layout
    with torch.cuda.device(x.get_device()):
        memory = _memory(x, stages, drawn, keep)
        prefixes = memory[0], memory[1]
        kept, gates = _kept(memory, stages) if keep == GATES else (None, None)
        if keep == LAST:
            nodes = Nodes(layout, prefixes, None)
        else:
            nodes = Nodes.of(layout, (memory[2], memory[3]), prefixes)
        if drawn.tables is None or ids is None:
            sweep_nodes(stages, layout, stages.tokens(x), carried, nodes, kept, gates)
        else:
            tables = _tables(drawn, stages, prefixes, nodes.together)
            given = ids.contiguous()
            sweep_blocks(
                stages, layout, tables, stages.tokens(x), given, carried, nodes, kept, gates
            )
        if keep == LAST:
            return [*memory, *(t.clone() for k in layout.pending for t in nodes.last(k))]
        return [*memory, *stages.pack()]


def _tables(
    drawn: Blueprint,
    stages: Stages,
    like: tuple[Tensor, Tensor],
    together: tuple[Tensor, Tensor] | None,
) -> TableNodes:
    """Memory for tables: behind all blocks, where these stand together."""
    assert drawn.tables is not None
    if together is not None:
        return TableNodes(drawn.tables, together, drawn.batch * drawn.layout.states)
    shape = (stages.seeds, drawn.tables.states, stages.size)
    h, c = (launch.empty(t, shape) for t in like)
    return TableNodes(drawn.tables, (h, c), 0)


def _memory(x: Tensor, stages: Stages, drawn: Blueprint, keep: str) -> list[Tensor]:
    """Prefixes; all blocks; the gates' sums of the leaves, and all of `Kept`."""
    seeds = stages.seeds

    def pair(*shape: int) -> list[Tensor]:
        kinds = (stages.operand, torch.float32)
        return [launch.empty(x, (*shape, stages.size), kind) for kind in kinds]

    memory = pair(seeds, drawn.batch, drawn.layout.slots)
    if keep != LAST:
        memory += pair(seeds, drawn.states)
    if keep == GATES:
        leaf, *_ = stages.columns
        memory.append(launch.empty(x, (seeds, drawn.leaves, leaf), stages.operand))
        kept = stages.between(x, drawn.merges, gates=True)
        memory += [*kept.gates, *kept.h, *kept.c]
    return memory


def _kept(memory: Sequence[Tensor], stages: Stages) -> tuple[Kept, Tensor]:
    count = len(stages.weights) - 1
    gates, rest = list(memory[5 : 5 + count]), list(memory[5 + count : 3 + 3 * count])
    return Kept(gates, rest[: count - 1], rest[count - 1 :]), memory[4]


@sweep_forward.register_fake
def _fake_forward(
    x: Tensor,
    ids: Tensor | None,
    weights: list[Tensor],
    biases: list[Tensor],
    carried: list[Tensor],
    spelling: list[int],
    at: list[int],
    operand: torch.dtype,
    precision: str,
    keep: str,
) -> list[Tensor]:
    drawn = _blueprint(x, ids, spelling, at)
    stages = Stages(weights, biases, operand, precision)
    memory = _memory(x, stages, drawn, keep)
    if keep == LAST:
        shape = (stages.seeds, drawn.batch, 1, stages.size)
        return memory + [t.new_empty(shape) for _ in drawn.layout.pending for t in memory[:2]]
    packed = [x.new_empty(shape, dtype=kind) for shape, kind in stages.packed_shapes()]
    return memory + packed


@torch.library.custom_op("prlstm::sweep_backward", mutates_args=())
def sweep_backward(
    x: Tensor,
    ids: Tensor | None,
    weights: list[Tensor],
    biases: list[Tensor],
    memory: list[Tensor],
    given: list[Tensor | None],
    spelling: list[int],
    at: list[int],
    operand: torch.dtype,
    precision: str,
    keep: str,
    needs_x: bool,
) -> list[Tensor]:
    """The gradients of the weights, the biases, what was carried, and of x if that `needs_x`."""
    drawn = _blueprint(x, ids, spelling, at)
    packed = memory[-len(weights) - len(biases) :]
    stages, layout = Stages(weights, biases, operand, precision, packed), drawn.layout
    prefixes, blocks = (memory[0], memory[1]), (memory[2], memory[3])
    kept, gates = _kept(memory, stages) if keep == GATES else (None, None)
    with torch.cuda.device(x.get_device()):
        dprefixes = _copy(given[0], prefixes[0]), _copy(given[1], prefixes[1])
        blocks_given = given[2] is not None or given[3] is not None
        is_clear = not blocks_given and blocks[1].nbytes <= CLEARED
        if blocks_given or is_clear:
            dblocks = _copy(given[2], blocks[0]), _copy(given[3], blocks[1])
        else:
            dblocks = (
                launch.empty(x, blocks[0].shape, operand),
                launch.empty(x, blocks[1].shape, torch.float32),
            )
        lookup = None
        if ids is not None:
            lookup = TablesBack(
                ids.contiguous(),
                *(_tables(drawn, stages, prefixes, together) for together in (blocks, dblocks)),
            )
        found = go_back(
            stages, layout, stages.tokens(x), Nodes.of(layout, blocks, prefixes), kept, gates,
            Nodes.of(layout, dblocks, dprefixes), blocks_given=blocks_given, is_clear=is_clear,
            needs_x=needs_x,
            lookup=lookup,
        )  # fmt: skip
    dx = [] if found.x is None else [found.x[..., : x.shape[3]].to(x.dtype, copy=True).contiguous()]
    return [*found.weights, *found.biases, *found.carried, *dx]


def _copy(given: Tensor | None, like: Tensor) -> Tensor:
    """A gradient to be added to."""
    return (
        torch.zeros_like(like)
        if given is None
        else given.clone(memory_format=torch.contiguous_format)
    )


@sweep_backward.register_fake
def _fake_backward(
    x: Tensor,
    ids: Tensor | None,
    weights: list[Tensor],
    biases: list[Tensor],
    memory: list[Tensor],
    given: list[Tensor | None],
    spelling: list[int],
    at: list[int],
    operand: torch.dtype,
    precision: str,
    keep: str,
    needs_x: bool,
) -> list[Tensor]:
    drawn = _blueprint(x, ids, spelling, at)
    states = 2 * (len(drawn.layout.waiting) + len(drawn.layout.from_folds))
    shape = (weights[0].shape[0], drawn.batch, 1, weights[0].shape[1] // 3)
    carried = [x.new_empty(shape, dtype=torch.float32) for _ in range(states)]
    return [
        *(torch.empty_like(t) for t in (*weights, *biases)),
        *carried,
        *([x.new_empty(x.shape)] if needs_x else []),
    ]


def _save(ctx: Any, inputs: tuple[Any, ...], output: list[Tensor]) -> None:
    x, ids, weights, biases, carried, *settings = inputs
    ctx.counts = (len(weights), len(biases))
    ctx.carried_types = [t.dtype for t in carried]
    ctx.settings, ctx.has_ids = settings, ids is not None
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*output[4:])
    ctx.save_for_backward(x, *([] if ids is None else [ids]), *weights, *biases, *output)


def _differentiate(ctx: Any, given: list[Tensor | None]) -> tuple[Any, ...]:
    if ctx.settings[-1] == LAST:
        raise RuntimeError("the backward pass of a sweep needs what was not kept")
    x, *rest = ctx.saved_tensors
    ids = rest.pop(0) if ctx.has_ids else None
    first, second = ctx.counts[0], sum(ctx.counts)
    weights, biases, memory = rest[:first], rest[first:second], rest[second:]
    needs_x = ctx.needs_input_grad[0]
    found = sweep_backward(x, ids, weights, biases, memory, list(given[:4]), *ctx.settings, needs_x)
    dx = found.pop() if needs_x else None
    carried = [t.to(kind) for t, kind in zip(found[second:], ctx.carried_types, strict=True)]
    none = [None] * len(ctx.settings)
    return dx, None, found[:first], found[first:second], carried, *none


sweep_forward.register_autograd(_differentiate, setup_context=_save)


@sweep_forward.register_vmap
def _over_seeds(
    info: Any,
    in_dims: tuple[Any, ...],
    x: Tensor,
    ids: Tensor | None,
    weights: list[Tensor],
    biases: list[Tensor],
    carried: list[Tensor],
    *settings: Any,
) -> tuple[list[Tensor], list[int]]:
    """What is mapped over becomes seeds, each with weights of its own."""

    def seeds(t: Tensor, dim: int | None) -> Tensor:
        moved = t.expand(info.batch_size, *t.shape) if dim is None else t.movedim(dim, 0)
        return moved.flatten(0, 1)

    dim_x, dim_ids, *dims = in_dims[:5]
    lists = [
        [seeds(t, dim) for t, dim in zip(tensors, each, strict=True)]
        for tensors, each in zip((weights, biases, carried), dims, strict=True)
    ]
    mapped = None if ids is None else seeds(ids, dim_ids)
    found = sweep_forward(seeds(x, dim_x), mapped, *lists, *settings)
    parts = [t.unflatten(0, (info.batch_size, -1)) for t in found]
    return parts, [0] * len(parts)
