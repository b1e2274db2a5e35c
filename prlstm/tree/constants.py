"""Tensors that depend on integers alone: made once for each device, and kept for a while.

A CUDA graph that was captured reads them where they stood: those that it saw are kept for ever.
"""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar, cast

import torch

# how many of a kind are kept
MOST = 1024

Given = ParamSpec("Given")
Made = TypeVar("Made")


# by their identity
_captured: dict[int, object] = {}


def kept(make: Callable[Given, Made]) -> Callable[Given, Made]:
    """What `make` gives is made once for equal arguments."""

    @lru_cache(maxsize=MOST)
    def once(*given: Given.args, **named: Given.kwargs) -> Made:
        # one that is first asked for in inference mode may be needed in training later
        with torch.inference_mode(False):
            return make(*given, **named)

    @wraps(make)
    def known(*given: Given.args, **named: Given.kwargs) -> Made:
        made = cast(Callable[Given, Made], once)(*given, **named)
        is_in_use: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        if is_in_use and torch.cuda.is_current_stream_capturing():
            _captured[id(made)] = made
        return made

    return known
