"""A whole sweep as an operator of PyTorch: autograd, vmap, the compiler and autocast know it.

Inside, x is (S, B, T, D) and states are (S, B, states, H): S seeds with weights of their own.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from prlstm.kernels import launch
from prlstm.kernels.backward import sweep_backward as go_back
from prlstm.kernels.layout import Layout, lay_out
from prlstm.kernels.nodes import Nodes
from prlstm.kernels.stages import Kept, Stages
from prlstm.kernels.sweep import sweep_codes, sweep_nodes

# What a sweep leaves behind: prefixes and the blocks that wait; prefixes and all blocks; or these
# and what the backward pass needs of the gates.
LAST, NODES, GATES = "last", "nodes", "gates"


@torch.library.custom_op("prlstm::sweep_forward", mutates_args=())
def sweep_forward(
    x: Tensor,
    weights: list[Tensor],
    biases: list[Tensor],
    carried: list[Tensor],
    start: int,
    count: int,
    operand: torch.dtype,
    precision: str,
    keep: str,
) -> list[Tensor]:
    """H and c of the prefixes (S, B, slots, H); then what `keep` says.

    That is, as `prlstm.kernels.layout` has it: h and c of every block that waits, (S, B, 1, H);
    or of all blocks, (S, B * blocks, H), and with gates what `_memory` lists.
    """
    layout, stages = lay_out(x.shape[2], start, count), Stages(weights, biases, operand, precision)
    with torch.cuda.device(x.get_device()):
        memory = _memory(x, stages, layout, keep)
        if keep == LAST:
            nodes = Nodes(layout, (memory[0], memory[1]), None)
            sweep_nodes(stages, layout, stages.tokens(x), carried, nodes)
            waiting = [t.clone() for k in layout.pending for t in nodes.last(k)]
            return [*memory, *waiting]
        kept, gates = _kept(memory, stages) if keep == GATES else (None, None)
        nodes = Nodes.of(layout, (memory[2], memory[3]), (memory[0], memory[1]))
        sweep_nodes(stages, layout, stages.tokens(x), carried, nodes, kept, gates)
    return memory


def _memory(x: Tensor, stages: Stages, layout: Layout, keep: str) -> list[Tensor]:
    """Prefixes; all blocks; the gates' sums of the leaves, and all of `Kept`."""
    seeds, batch, length = x.shape[:3]

    def pair(*shape: int) -> list[Tensor]:
        kinds = (stages.operand, torch.float32)
        return [launch.empty(x, (*shape, stages.size), kind) for kind in kinds]

    memory = pair(seeds, batch, layout.slots)
    if keep != LAST:
        memory += pair(seeds, batch * layout.states)
    if keep == GATES:
        leaf, *_ = stages.columns
        memory.append(launch.empty(x, (seeds, batch * length, leaf), stages.operand))
        kept = stages.between(x, batch * layout.merges, gates=True)
        memory += [*kept.gates, *kept.h, *kept.c]
    return memory


def _kept(memory: Sequence[Tensor], stages: Stages) -> tuple[Kept, Tensor]:
    count = len(stages.weights) - 1
    gates, rest = list(memory[5 : 5 + count]), list(memory[5 + count :])
    return Kept(gates, rest[: count - 1], rest[count - 1 :]), memory[4]


@sweep_forward.register_fake
def _fake_forward(
    x: Tensor,
    weights: list[Tensor],
    biases: list[Tensor],
    carried: list[Tensor],
    start: int,
    count: int,
    operand: torch.dtype,
    precision: str,
    keep: str,
) -> list[Tensor]:
    layout, stages = (
        lay_out(int(x.shape[2]), start, count),
        Stages(weights, biases, operand, precision),
    )
    return _fake_last(x, stages, layout) if keep == LAST else _memory(x, stages, layout, keep)


def _fake_last(x: Tensor, stages: Stages, layout: Layout) -> list[Tensor]:
    memory = _memory(x, stages, layout, LAST)
    shape = (*x.shape[:2], 1, stages.size)
    return memory + [t.new_empty(shape) for _ in layout.pending for t in memory[:2]]


@torch.library.custom_op("prlstm::sweep_table", mutates_args=())
def sweep_table(
    codes: Tensor,
    h: Tensor,
    c: Tensor,
    weights: list[Tensor],
    biases: list[Tensor],
    start: int,
    operand: torch.dtype,
    precision: str,
) -> list[Tensor]:
    """The same for leaves `codes` (S, B, T) of a table: h and c (S, V, H). Keeps what waits."""
    layout, stages = lay_out(codes.shape[2], start), Stages(weights, biases, operand, precision)
    with torch.cuda.device(codes.get_device()):
        memory = _memory(codes, stages, layout, LAST)
        nodes = Nodes(layout, (memory[0], memory[1]), None)
        padded = [
            F.pad(t, (0, stages.size - t.shape[-1])).to(kind)
            for t, kind in ((h, operand), (c, torch.float32))
        ]
        sweep_codes(stages, layout, codes.contiguous(), (padded[0], padded[1]), nodes)
        return [*memory, *(t.clone() for k in layout.pending for t in nodes.last(k))]


@sweep_table.register_fake
def _fake_table(
    codes: Tensor,
    h: Tensor,
    c: Tensor,
    weights: list[Tensor],
    biases: list[Tensor],
    start: int,
    operand: torch.dtype,
    precision: str,
) -> list[Tensor]:
    stages = Stages(weights, biases, operand, precision)
    return _fake_last(codes, stages, lay_out(int(codes.shape[2]), start))


@torch.library.custom_op("prlstm::sweep_backward", mutates_args=())
def sweep_backward(
    x: Tensor,
    weights: list[Tensor],
    biases: list[Tensor],
    memory: list[Tensor],
    given: list[Tensor | None],
    start: int,
    count: int,
    operand: torch.dtype,
    precision: str,
    keep: str,
    needs_x: bool,
) -> list[Tensor]:
    """The gradients of the weights, the biases, what was carried, and of x if that `needs_x`."""
    layout, stages = lay_out(x.shape[2], start, count), Stages(weights, biases, operand, precision)
    prefixes, blocks = (memory[0], memory[1]), (memory[2], memory[3])
    kept, gates = _kept(memory, stages) if keep == GATES else (None, None)
    with torch.cuda.device(x.get_device()):
        dprefixes = _copy(given[0], prefixes[0]), _copy(given[1], prefixes[1])
        blocks_given = given[2] is not None or given[3] is not None
        if blocks_given:
            dblocks = _copy(given[2], blocks[0]), _copy(given[3], blocks[1])
        else:
            dblocks = (
                launch.empty(x, blocks[0].shape, operand),
                launch.empty(x, blocks[1].shape, torch.float32),
            )
        found = go_back(
            stages, layout, stages.tokens(x), Nodes.of(layout, blocks, prefixes), kept, gates,
            Nodes.of(layout, dblocks, dprefixes), blocks_given=blocks_given, needs_x=needs_x,
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
    weights: list[Tensor],
    biases: list[Tensor],
    memory: list[Tensor],
    given: list[Tensor | None],
    start: int,
    count: int,
    operand: torch.dtype,
    precision: str,
    keep: str,
    needs_x: bool,
) -> list[Tensor]:
    layout = lay_out(int(x.shape[2]), start, count)
    states = 2 * (len(layout.waiting) + len(layout.from_folds))
    shape = (*x.shape[:2], 1, weights[0].shape[1] // 3)
    carried = [x.new_empty(shape, dtype=torch.float32) for _ in range(states)]
    return [
        *(torch.empty_like(t) for t in (*weights, *biases)),
        *carried,
        *([x.new_empty(x.shape)] if needs_x else []),
    ]


def _save(ctx: Any, inputs: tuple[Any, ...], output: list[Tensor]) -> None:
    x, weights, biases, carried, *settings = inputs
    ctx.counts = (len(weights), len(biases))
    ctx.carried_types = [t.dtype for t in carried]
    ctx.settings = settings
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*output[4:])
    ctx.save_for_backward(x, *weights, *biases, *output)


def _differentiate(ctx: Any, given: list[Tensor | None]) -> tuple[Any, ...]:
    if ctx.settings[-1] == LAST:
        raise RuntimeError("the backward pass of a sweep needs what was not kept")
    x, *rest = ctx.saved_tensors
    weights, biases = rest[: ctx.counts[0]], rest[ctx.counts[0] : sum(ctx.counts)]
    needs_x = ctx.needs_input_grad[0]
    found = sweep_backward(
        x, weights, biases, rest[sum(ctx.counts) :], list(given[:4]), *ctx.settings, needs_x
    )
    dx = found.pop() if needs_x else None
    first, second = ctx.counts[0], sum(ctx.counts)
    carried = [t.to(kind) for t, kind in zip(found[second:], ctx.carried_types, strict=True)]
    return dx, found[:first], found[first:second], carried, *[None] * len(ctx.settings)


sweep_forward.register_autograd(_differentiate, setup_context=_save)


@sweep_forward.register_vmap
def _over_seeds(
    info: Any,
    in_dims: tuple[Any, ...],
    x: Tensor,
    weights: list[Tensor],
    biases: list[Tensor],
    carried: list[Tensor],
    *settings: Any,
) -> tuple[list[Tensor], list[int]]:
    """What is mapped over becomes seeds, each with weights of its own."""

    def seeds(t: Tensor, dim: int | None) -> Tensor:
        moved = t.expand(info.batch_size, *t.shape) if dim is None else t.movedim(dim, 0)
        return moved.flatten(0, 1)

    dim_x, *dims = in_dims[:4]
    lists = [
        [seeds(t, dim) for t, dim in zip(tensors, each, strict=True)]
        for tensors, each in zip((weights, biases, carried), dims, strict=True)
    ]
    found = sweep_forward(seeds(x, dim_x), *lists, *settings)
    parts = [t.unflatten(0, (info.batch_size, -1)) for t in found]
    return parts, [0] * len(parts)
