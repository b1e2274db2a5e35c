"""Which arithmetic is done in which type."""

import torch
from torch import Tensor


def wide_type(dtype: torch.dtype) -> torch.dtype:
    """The type of gates and cell states: float32, or wider where the weights are."""
    return torch.promote_types(dtype, torch.float32)


def wide(product: Tensor) -> Tensor:
    """A matrix product as gates take it, whatever type it was computed in."""
    return product.to(wide_type(product.dtype))
