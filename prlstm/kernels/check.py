"""What a caller hands to the gated block, or a named error."""

from collections.abc import Sequence

import torch
from torch import Tensor

# how products of float32 operands are computed; half precision knows one way alone
PRECISIONS = ("ieee", "tf32", "tf32x3")
OPERANDS = (torch.float32, torch.bfloat16, torch.float16)


def check_arguments(
    h: Sequence[Tensor],
    c: Sequence[Tensor],
    weight: Tensor,
    bias: Tensor | None,
    precision: str,
    operand: torch.dtype,
    *,
    any_input: bool,
) -> None:
    """Raise unless these are what `gated` describes, for products of type `operand`.

    With `any_input`, h need not have that type already.
    """
    states = len(c)
    if states > 2 or len(h) != max(states, 1):
        raise ValueError(
            f"h and c hold {len(h)} and {states} tensors: expected 1 and 0, 1 and 1, or 2 and 2"
        )
    if precision not in PRECISIONS:
        raise ValueError(f"precision={precision!r}: expected one of {', '.join(PRECISIONS)}")
    _check_types(h, c, weight, operand, any_input)
    _check_shapes(h, c, weight, bias)
    given = {"bias": bias, **{f"h[{j}]": t for j, t in enumerate(h)}}
    given |= {f"c[{j}]": t for j, t in enumerate(c)}
    for name, tensor in given.items():
        if tensor is not None and tensor.device != weight.device:
            raise ValueError(
                f"{name} is on {tensor.device}: expected {weight.device}, as the weight is"
            )


def _check_types(
    h: Sequence[Tensor],
    c: Sequence[Tensor],
    weight: Tensor,
    operand: torch.dtype,
    any_input: bool,
) -> None:
    if operand not in OPERANDS or weight.dtype not in OPERANDS:
        names = ", ".join(map(str, OPERANDS))
        raise TypeError(f"weight is {weight.dtype}: expected one of {names}")
    for j, t in enumerate(h):
        if t.dtype != operand and not (any_input and t.dtype in OPERANDS):
            raise TypeError(f"h[{j}] is {t.dtype}: expected {operand}, the type of the weight")
    for j, t in enumerate(c):
        if t.dtype != torch.float32:
            raise TypeError(f"c[{j}] is {t.dtype}: expected torch.float32")


def _check_shapes(
    h: Sequence[Tensor], c: Sequence[Tensor], weight: Tensor, bias: Tensor | None
) -> None:
    gates, states = len(c) + 3, len(h)
    if weight.dim() not in (2, 3) or weight.shape[-2] % gates or weight.shape[-1] % states:
        raise ValueError(
            f"weight of shape {tuple(weight.shape)}: "
            f"expected ({gates} H, {states} K), or a leading axis of seeds before that"
        )
    if bias is not None and bias.shape != weight.shape[:-1]:
        raise ValueError(f"bias of shape {tuple(bias.shape)}: expected {tuple(weight.shape[:-1])}")
    lead = h[0].shape[:-1]
    if weight.dim() == 3 and lead[:1] != weight.shape[:1]:
        raise ValueError(
            f"h[0] of shape {tuple(h[0].shape)}: expected {weight.shape[0]} seeds in front, "
            "as the weight has"
        )
    sizes = {"h": (h, weight.shape[-1] // states), "c": (c, weight.shape[-2] // gates)}
    for name, (tensors, size) in sizes.items():
        for j, t in enumerate(tensors):
            if t.shape != (*lead, size):
                raise ValueError(f"{name}[{j}] of shape {tuple(t.shape)}: expected {(*lead, size)}")
