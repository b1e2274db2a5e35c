"""The gated block as an operator of PyTorch: autograd, vmap, the compiler and autocast know it.

Inside, h and c are (S, B, L, size): S seeds with a weight each, B and L whatever the caller has.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from prlstm.kernels import launch
from prlstm.kernels.check import check_arguments


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
    those of the backward pass follow `torch.backends.cuda.matmul`.
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

    Those are (S, B L, G H), or (S, 0, G H) unless `keep`: the backward pass needs them.
    """
    new_h, new_c, gates = _outputs(h, c, weight, dtype, keep)
    launch.forward(h, c, weight, bias, new_h, new_c, gates if keep else None, precision)
    return new_h, new_c, gates


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
    gate_rows = weight.shape[1]
    shape = (seeds, batch, length, gate_rows // (len(c) + 3))
    return (
        launch.empty(weight, shape, dtype),
        launch.empty(weight, shape, torch.float32),
        launch.empty(weight, (seeds, batch * length if keep else 0, gate_rows)),
    )


@torch.library.custom_op("prlstm::gated_backward", mutates_args=())
def gated_backward(
    gates: Tensor, c: list[Tensor], new_c: Tensor, dh: Tensor | None, dc: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The gradients of the gates' sums (S, B L, G H) and of all incoming c (n, S, B, L, H)."""
    dgates, dc_in = _gradients(gates, c, new_c, dh, dc)
    launch.backward(gates, c, new_c, dh, dc, dgates, dc_in)
    return dgates, dc_in


@gated_backward.register_fake
def _gradients(
    gates: Tensor, c: list[Tensor], new_c: Tensor, dh: Tensor | None, dc: Tensor | None
) -> tuple[Tensor, Tensor]:
    return launch.empty(gates, gates.shape), launch.empty(new_c, (len(c), *new_c.shape))


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    h, c, weight, bias, *_ = inputs
    _, new_c, gates = output
    ctx.mark_non_differentiable(gates)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*h, *c, weight, new_c, gates)
    ctx.states, ctx.bias_type = len(c), None if bias is None else bias.dtype


def _differentiate(
    ctx: Any, dh: Tensor | None, dc: Tensor | None, _: Tensor | None
) -> tuple[Any, ...]:
    """The products here are PyTorch's own, for each incoming state on its own."""
    *states, weight, new_c, gates = ctx.saved_tensors
    h, c = states[: len(states) - ctx.states], states[len(states) - ctx.states :]
    if dh is None and dc is None:
        return [None] * len(h), [None] * len(c), None, None, None, None, None
    dgates, dc_in = gated_backward(gates, c, new_c, dh, dc)
    needs_h, _, needs_weight, needs_bias, *_ = ctx.needs_input_grad
    dh_in: list[Tensor | None] = [None] * len(h)
    if any(needs_h):
        dz = torch.matmul(dgates, weight).view(*new_c.shape[:3], weight.shape[-1])
        dh_in = [part.to(t.dtype) for part, t in zip(dz.chunk(len(h), -1), h, strict=True)]
    dweight = None
    if needs_weight:
        rows = [t.flatten(1, 2).to(weight.dtype) for t in h]
        dweight = torch.cat([torch.matmul(dgates.mT, z) for z in rows], -1)
    dbias = dgates.sum(1, dtype=torch.float32).to(ctx.bias_type) if needs_bias else None
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
