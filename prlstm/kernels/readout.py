"""A read-out of few classes as an operator of PyTorch: one launch forward, one or two backward."""

from typing import Any

import torch
from torch import Tensor

from prlstm.kernels import launch
from prlstm.kernels.choose import Products
from prlstm.kernels.tiles import block_for

# rows and features of a tile, and into how many sums the rows of a seed are split at the most
ROWS, FEATURES, SPLITS = 64, 128, 64
# beyond so many classes a library is faster
MOST_CLASSES = 64
TYPES = {torch.bfloat16: "bfloat16", torch.float16: "float16", torch.float32: "float32"}


def relu_linear(h: Tensor, weight: Tensor, bias: Tensor, products: Products) -> Tensor:
    """`relu(h) @ weight.T + bias`, in float32, of h (..., H) and a weight (C, H)."""
    flat = h.reshape(-1, *h.shape[-2:]) if h.dim() != 3 else h
    logits: Tensor = read_out(flat[None], weight[None], bias[None], *products)
    return logits.view(*h.shape[:-1], weight.shape[0])


@torch.library.custom_op("prlstm::read_out", mutates_args=())
def read_out(
    h: Tensor, weight: Tensor, bias: Tensor, operand: torch.dtype, precision: str
) -> Tensor:
    """Logits (S, B, L, C) in float32 of h (S, B, L, H), weights (S, C, H) and biases (S, C)."""
    dense, (seeds, batch, length, size) = _dense(h), h.shape
    classes, rows = weight.shape[1], batch * length
    logits = launch.empty(h, (seeds, batch, length, classes), torch.float32)
    launch.kernels(h)
    with torch.cuda.device(h.get_device()):
        if rows:
            launch.imported("rectified").read_out[-(-rows // ROWS), seeds](
                dense, dense.stride()[:3], weight.contiguous(), bias.contiguous(), logits, rows,
                length, H=size, C=classes, BLOCK_M=ROWS, BLOCK_H=min(FEATURES, block_for(size)),
                BLOCK_C=block_for(classes), **_arithmetic(operand, precision),
            )  # fmt: skip
    return logits


@read_out.register_fake
def _fake(h: Tensor, weight: Tensor, bias: Tensor, operand: torch.dtype, precision: str) -> Tensor:
    return h.new_empty((*h.shape[:3], weight.shape[1]), dtype=torch.float32)


@torch.library.custom_op("prlstm::read_out_backward", mutates_args=())
def read_out_backward(
    h: Tensor, weight: Tensor, dlogits: Tensor, operand: torch.dtype, precision: str
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of h, weight and bias."""
    dense, (seeds, batch, length, size) = _dense(h), h.shape
    classes, rows = weight.shape[1], batch * length
    tiles = -(-rows // ROWS)
    each = max(1, -(-tiles // SPLITS)) * ROWS
    splits = max(1, -(-rows // each))
    dh = launch.empty(h, h.shape)
    dweight = launch.empty(h, (seeds, splits, classes, size), torch.float32)
    dbias = launch.empty(h, (seeds, splits, classes), torch.float32)
    features = min(FEATURES, block_for(size))
    launch.kernels(h)
    with torch.cuda.device(h.get_device()):
        launch.imported("rectified").read_out_backward[splits, -(-size // features), seeds](
            dense, dense.stride()[:3], weight.contiguous(), dlogits.contiguous(), dh, dweight,
            dbias, rows, max(1, length), each, H=size, C=classes, BLOCK_M=ROWS,
            BLOCK_H=features, BLOCK_C=block_for(classes), **_arithmetic(operand, precision),
        )  # fmt: skip
    sums = (t.sum(1) if splits > 1 else t[:, 0] for t in (dweight, dbias))
    of_weight, of_bias = (t.to(weight.dtype) for t in sums)
    return dh, of_weight, of_bias


@read_out_backward.register_fake
def _fake_backward(
    h: Tensor, weight: Tensor, dlogits: Tensor, operand: torch.dtype, precision: str
) -> tuple[Tensor, Tensor, Tensor]:
    return h.new_empty(h.shape), torch.empty_like(weight), weight.new_empty(weight.shape[:2])


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    h, weight, _, *ctx.settings = inputs
    ctx.save_for_backward(h, weight)


def _differentiate(ctx: Any, given: Tensor) -> tuple[Tensor | None, ...]:
    return (*read_out_backward(*ctx.saved_tensors, given, *ctx.settings), None, None)


read_out.register_autograd(_differentiate, setup_context=_save)


@read_out.register_vmap
def _over_seeds(
    info: Any,
    in_dims: tuple[Any, ...],
    h: Tensor,
    weight: Tensor,
    bias: Tensor,
    operand: torch.dtype,
    precision: str,
) -> tuple[Tensor, int]:
    """What is mapped over becomes seeds, each with weights of its own."""

    def seeds(t: Tensor, dim: int | None) -> Tensor:
        moved = t.expand(info.batch_size, *t.shape) if dim is None else t.movedim(dim, 0)
        return moved.flatten(0, 1)

    given = [seeds(t, dim) for t, dim in zip((h, weight, bias), in_dims[:3], strict=True)]
    return read_out(*given, operand, precision).unflatten(0, (info.batch_size, -1)), 0


def _dense(h: Tensor) -> Tensor:
    """With features side by side; other strides are followed."""
    return h if h.stride(-1) == 1 else h.contiguous()


def _arithmetic(operand: torch.dtype, precision: str) -> dict[str, Any]:
    import triton.language as tl

    return {"OPERAND": getattr(tl, TYPES[operand]), "PRECISION": precision}
