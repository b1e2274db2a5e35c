"""Tensors that depend on integers alone: made once for each device, and kept for ever.

A CUDA graph that was captured reads them where they stood, so none may be dropped; they are small.
"""

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar, cast

import torch

Given = ParamSpec("Given")
Made = TypeVar("Made")


def kept(make: Callable[Given, Made]) -> Callable[Given, Made]:
    """What `make` gives is made once for equal arguments."""

    @wraps(make)
    def once(*given: Given.args, **named: Given.kwargs) -> Made:
        # one that is first asked for in inference mode may be needed in training later
        with torch.inference_mode(False):
            made: Made = make(*given, **named)
            return made

    return cast(Callable[Given, Made], cache(once))
