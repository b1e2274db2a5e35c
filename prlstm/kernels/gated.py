"""The gated block as an operator of PyTorch: autograd, vmap, the compiler and autocast know it.

Inside, h and c are (S, B, L, size): S seeds with a weight each, B and L whatever the caller has.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from prlstm.kernels import launch
from prlstm.kernels.check import check_arguments
from prlstm.kernels.places import Rows, Shape, States
from prlstm.kernels.tiles import features_for
from prlstm.kernels.weights import Block, Tiled, tile_weights, untile_bias, untile_weights


def gated(
    h: Sequence[Tensor],
    c: Sequence[Tensor],
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    precision: str = "ieee",
) -> tuple[Tensor, Tensor]:
    """The new `(h, c)` from n incoming ones; for n = 0, from the token `h[0]` and an empty `c`.

    Shapes: each of `h` (..., K), of `c` (..., H); `weight` ((n + 3) H, max(n, 1) K), its rows in
    the order f_1..f_n, i, o, u; `bias` ((n + 3) H,). A leading axis of seeds may stand before all
    of them. c is float32; h has the type of the weight. `precision` is that of float32 products;
    those of the backward pass follow `torch.backends.cuda.matmul`. States that stand side by side,
    every second one of an array say, are read as one row.
    """
    kind = weight.device.type
    # the compiler of older PyTorch cannot ask whether there is autocast for a device
    is_autocast = kind in ("cpu", "cuda") and torch.is_autocast_enabled(kind)
    operand = torch.get_autocast_dtype(kind) if is_autocast else weight.dtype
    check_arguments(h, c, weight, bias, precision, operand, any_input=is_autocast)
    is_stacked = weight.dim() == 3
    if not is_stacked:
        h, c, weight = [t[None] for t in h], [t[None] for t in c], weight[None]
        bias = None if bias is None else bias[None]
    new_h, new_c, _ = gated_forward(
        [_four_dimensions(t) for t in h],
        [_four_dimensions(t) for t in c],
        weight.to(operand),
        bias,
        weight.dtype,
        precision,
        _wants_gradient(*h, *c, weight, bias),
    )
    shape = (*h[0].shape[0 if is_stacked else 1 : -1], new_h.shape[-1])
    return new_h.view(shape), new_c.view(shape)


def _four_dimensions(t: Tensor) -> Tensor:
    """(S, ..., size) as (S, B, L, size), a view wherever there is one."""
    if t.dim() > 4:
        return t.flatten(1, -3)
    return t[(slice(None), *(None,) * (4 - t.dim()))]


def _wants_gradient(*tensors: Tensor | None) -> bool:
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


@torch.library.custom_op("prlstm::gated_forward", mutates_args=())
def gated_forward(
    h: list[Tensor],
    c: list[Tensor],
    weight: Tensor,
    bias: Tensor | None,
    dtype: torch.dtype,
    precision: str,
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """The new h in `dtype`, the new c, and the sums that the gates are made of.

    Those are (S, B L, C) as the kernels order them, or (S, 0, C) unless `keep`: the backward pass
    needs them.
    """
    new_h, new_c, gates = _outputs(h, c, weight, dtype, keep)
    launch.kernels(weight)
    with torch.cuda.device(weight.get_device()):
        weights = _tiled(weight, bias, len(c))
        launch.forward(
            [States.of(t) for t in h],
            [States.of(t) for t in c],
            weights,
            States.of(new_h),
            States.of(new_c),
            Rows(gates, 0) if keep else None,
            Shape(*h[0].shape[:3]),
            precision=precision,
        )
    return new_h, new_c, gates


def _block(weight: Tensor, states: int) -> Block:
    return Block(states, weight.shape[2] // max(states, 1), weight.shape[1] // (states + 3))


def _tiled(weight: Tensor, bias: Tensor | None, states: int) -> Tiled:
    block = _block(weight, states)
    features = features_for(block.hidden_size)
    return tile_weights(weight, bias, block, block, features, weight.dtype)


@gated_forward.register_fake
def _fake_forward(
    h: list[Tensor],
    c: list[Tensor],
    weight: Tensor,
    bias: Tensor | None,
    dtype: torch.dtype,
    precision: str,
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    return _outputs(h, c, weight, dtype, keep)


def _outputs(
    h: list[Tensor], c: list[Tensor], weight: Tensor, dtype: torch.dtype, keep: bool
) -> tuple[Tensor, Tensor, Tensor]:
    seeds, batch, length, _ = h[0].shape
    block = _block(weight, len(c))
    columns = block.columns(features_for(block.hidden_size))
    shape = (seeds, batch, length, block.hidden_size)
    return (
        launch.empty(weight, shape, dtype),
        launch.empty(weight, shape, torch.float32),
        launch.empty(weight, (seeds, batch * length if keep else 0, columns)),
    )


@torch.library.custom_op("prlstm::gated_backward", mutates_args=())
def gated_backward(
    gates: Tensor,
    c: list[Tensor],
    weight: Tensor,
    dh: Tensor | None,
    dc: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of the gates' sums (S, B L, C), of all incoming h, of all c, and of the bias.

    Those of h are (S, B L, n K), those of c (n, S, B, L, H), that of the bias (S, C).
    """
    given = dc if dh is None else dh
    assert given is not None
    shape = Shape(*given.shape[:3])
    dgates, dz, dc_in, _ = _gradients(gates, c, weight, dh, dc)
    with torch.cuda.device(weight.get_device()):
        weights = _tiled(weight, None, len(c))
        if gates.shape[1] != shape.rows:
            raise RuntimeError(
                f"gates of shape {tuple(gates.shape)}: expected {shape.rows} rows, which the "
                "forward pass keeps if a gradient is wanted of an argument when it is called"
            )
        sums = launch.empty(
            dc_in, (shape.seeds, launch.parts(shape.rows), weights.columns), torch.float32
        )
        launch.backward(
            Rows(gates, 0),
            dgates,
            [States.of(t) for t in c],
            None if dh is None else States.of(dh),
            None if dc is None else States.of(dc),
            [States.of(t) for t in dc_in],
            Rows(sums, 0),
            weights,
            shape,
        )
        # the products here are PyTorch's own
        rows = weights.weight.view(shape.seeds, weights.columns, -1, weights.spacing)
        torch.bmm(dgates, rows[..., : weights.block.input_size].flatten(2), out=dz)
    return dgates, dz, dc_in, sums.sum(1)


@gated_backward.register_fake
def _gradients(
    gates: Tensor,
    c: list[Tensor],
    weight: Tensor,
    dh: Tensor | None,
    dc: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    given = dc if dh is None else dh
    assert given is not None
    seeds, batch, length, hidden_size = given.shape
    return (
        launch.empty(gates, (seeds, batch * length, gates.shape[2])),
        launch.empty(gates, (seeds, batch * length, weight.shape[2])),
        launch.empty(gates, (len(c), seeds, batch, length, hidden_size), torch.float32),
        launch.empty(gates, (seeds, gates.shape[2]), torch.float32),
    )


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    h, c, weight, bias, *_ = inputs
    _, _, gates = output
    ctx.mark_non_differentiable(gates)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*h, *c, weight, gates)
    ctx.states, ctx.bias_type = len(c), None if bias is None else bias.dtype


def _differentiate(
    ctx: Any, dh: Tensor | None, dc: Tensor | None, _: Tensor | None
) -> tuple[Any, ...]:
    *states, weight, gates = ctx.saved_tensors
    h, c = states[: len(states) - ctx.states], states[len(states) - ctx.states :]
    if dh is None and dc is None:
        return [None] * len(h), [None] * len(c), None, None, None, None, None
    dgates, dz, dc_in, sums = gated_backward(gates, c, weight, dh, dc)
    needs_h, _, needs_weight, needs_bias, *_ = ctx.needs_input_grad
    dh_in: list[Tensor | None] = [None] * len(h)
    if any(needs_h):
        each = dz.view(*h[0].shape[:3], weight.shape[2]).chunk(len(h), -1)
        dh_in = [part.to(t.dtype) for part, t in zip(each, h, strict=True)]
    block = _block(weight, ctx.states)
    features = features_for(block.hidden_size)
    dweight = dbias = None
    if needs_weight:
        rows = [t.flatten(1, 2).to(weight.dtype) for t in h]
        tiled = torch.cat([torch.matmul(dgates.mT, z) for z in rows], -1)
        dweight = untile_weights(tiled, block, features)
    if needs_bias:
        dbias = untile_bias(sums, block, features).to(ctx.bias_type)
    return dh_in, list(dc_in.unbind()), dweight, dbias, None, None, None


gated_forward.register_autograd(_differentiate, setup_context=_save)


@gated_forward.register_vmap
def _over_seeds(
    info: Any,
    in_dims: tuple[Any, ...],
    h: list[Tensor],
    c: list[Tensor],
    weight: Tensor,
    bias: Tensor | None,
    dtype: torch.dtype,
    precision: str,
    keep: bool,
) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    """Many weights are many seeds; one weight for all makes the new axis more batch."""
    dims_h, dims_c, dim_weight, dim_bias, *_ = in_dims
    size = info.batch_size
    # inside vmap a tensor does not tell whether its gradient is wanted
    keep = keep or _wants_gradient(*h, *c, weight, bias)
    h = [_in_front(t, dim, size) for t, dim in zip(h, dims_h, strict=True)]
    c = [_in_front(t, dim, size) for t, dim in zip(c, dims_c, strict=True)]
    if dim_weight is None and dim_bias is None:
        h, c = [t.movedim(0, 1) for t in h], [t.movedim(0, 1) for t in c]
        axis = 1
    else:
        weight = _in_front(weight, dim_weight, size).flatten(0, 1)
        bias = None if bias is None else _in_front(bias, dim_bias, size).flatten(0, 1)
        axis = 0
    h, c = [t.flatten(axis, axis + 1) for t in h], [t.flatten(axis, axis + 1) for t in c]
    outputs = gated_forward(h, c, weight, bias, dtype, precision, keep)
    # where nothing was kept, the axis is empty
    split = [(size, t.shape[axis] // size) for t in outputs]
    parts = [t.unflatten(axis, sizes) for t, sizes in zip(outputs, split, strict=True)]
    return tuple(parts), (axis,) * len(parts)


def _in_front(t: Tensor, dim: int | None, size: int) -> Tensor:
    """`t` with the axis of vmap in front, repeated without a copy if it has none."""
    return t.expand(size, *t.shape) if dim is None else t.movedim(dim, 0)
