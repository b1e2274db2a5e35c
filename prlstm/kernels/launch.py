"""How the kernels are launched: memory, tiles, strides. Triton is imported at the first launch."""

from collections.abc import Sequence
from types import ModuleType

import torch
from torch import Tensor

from prlstm.kernels.tiles import block_for, tile_for

# tiles of the backward kernel, which computes no products
BACKWARD_ROWS, BACKWARD_FEATURES = 16, 64


def empty(like: Tensor, shape: Sequence[int], dtype: torch.dtype | None = None) -> Tensor:
    """Memory for an output of a kernel; a test puts NaN there first."""
    return like.new_empty(shape, dtype=dtype)


def forward(
    h: Sequence[Tensor],
    c: Sequence[Tensor],
    weight: Tensor,
    bias: Tensor | None,
    new_h: Tensor,
    new_c: Tensor,
    gates: Tensor | None,
    precision: str,
) -> None:
    """Compute `new_h`, `new_c` and, where they are wanted, the gates' sums."""
    seeds, batch, length, hidden_size = new_h.shape
    rows = batch * length
    if seeds * rows * hidden_size == 0:
        return
    block = _kernels(weight)
    input_size = h[0].shape[-1]
    is_wide = weight.dtype == torch.float32
    arithmetic = precision if is_wide else str(weight.dtype).removeprefix("torch.")
    tile = tile_for(arithmetic, hidden_size, input_size)
    tiles = -(-rows // tile.rows) * -(-hidden_size // tile.features)
    with torch.cuda.device(weight.get_device()):
        block.gated_forward[tiles, seeds](
            *_operands(h, 2),
            *_operands(c, 2),
            weight.contiguous(),
            None if bias is None else bias.contiguous(),
            *_operands([new_h], 1),
            *_operands([new_c], 1),
            gates,
            rows,
            length,
            N=len(c),
            H=hidden_size,
            K=input_size,
            BLOCK_M=tile.rows,
            BLOCK_H=tile.features,
            BLOCK_K=tile.products,
            GROUP_M=tile.group,
            PRECISION=precision,
            # the interpreter knows no instruction of the hardware
            FAST=not is_wide and not block.INTERPRETED,
            num_warps=tile.warps,
            num_stages=tile.stages,
        )


def backward(
    gates: Tensor,
    c: Sequence[Tensor],
    new_c: Tensor,
    dh: Tensor | None,
    dc: Tensor | None,
    dgates: Tensor,
    dc_in: Tensor,
) -> None:
    """Compute the gradients of the gates' sums and of the incoming c."""
    seeds, batch, length, hidden_size = new_c.shape
    rows = batch * length
    if gates.shape[1] != rows:
        raise RuntimeError(
            f"gates of shape {tuple(gates.shape)}: expected {rows} rows, which the forward pass "
            "keeps if a gradient is wanted of an argument when it is called"
        )
    if seeds * rows * hidden_size == 0:
        return
    block = _kernels(gates)
    features = min(BACKWARD_FEATURES, block_for(hidden_size))
    tiles = -(-rows // BACKWARD_ROWS), -(-hidden_size // features)
    with torch.cuda.device(gates.get_device()):
        block.gated_backward[*tiles, seeds](
            gates.contiguous(),
            *_operands(c, 2),
            *_operands([new_c], 1),
            *_operands([] if dh is None else [dh], 1),
            *_operands([] if dc is None else [dc], 1),
            dgates,
            *[*dc_in, None, None][:2],
            rows,
            length,
            N=len(c),
            H=hidden_size,
            BLOCK_M=BACKWARD_ROWS,
            BLOCK_H=features,
        )


def _operands(tensors: Sequence[Tensor], count: int) -> list[Tensor | tuple[int, ...] | None]:
    """Each tensor and the strides of its rows, then None for those that are missing."""
    operands: list[Tensor | tuple[int, ...] | None] = []
    for t in tensors:
        dense = t if t.stride(-1) == 1 or t.shape[-1] == 1 else t.contiguous()
        # the stride of a dimension of one is arbitrary, and kernels are compiled by strides
        pairs = zip(dense.shape[:3], dense.stride()[:3], strict=True)
        operands += [dense, tuple(stride if size > 1 else 0 for size, stride in pairs)]
    return operands + [None] * (2 * (count - len(tensors)))


def _kernels(operand: Tensor) -> ModuleType:
    from prlstm.kernels import block

    if operand.device.type != "cuda" and not block.INTERPRETED:
        raise ValueError(f"weight is on {operand.device}: expected a CUDA device")
    return block
