"""Which arithmetic is done in which type."""

import torch
from torch import Tensor


def wide_type(dtype: torch.dtype) -> torch.dtype:
    """The type of gates and cell states: float32, or wider where the weights are."""
    return torch.promote_types(dtype, torch.float32)


def wide(product: Tensor) -> Tensor:
    """A matrix product as gates take it, whatever type it was computed in."""
    return product.to(wide_type(product.dtype))


def can_multiply(tensor: Tensor, weight: Tensor) -> bool:
    """Whether a product of the two works: equal types, or autocast makes them equal."""
    if tensor.dtype == weight.dtype:
        return True
    kind = weight.device.type
    autocast = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    # autocast leaves float64 alone
    return autocast and torch.float64 not in (tensor.dtype, weight.dtype)
