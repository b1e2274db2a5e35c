"""The work of the layer, counted at its composition block: merges, not seconds."""

from math import ceil, floor, log2

import pytest
import torch
from torch import Tensor, nn

from prlstm import PRLSTM
from prlstm.tree import Plan

LENGTHS = [1, 2, 3, 8, 13, 40, 127, 128, 129, 500]


class Counter:
    """Counts calls and states of a composition block."""

    def __init__(self, layer: PRLSTM) -> None:
        self.calls = self.merges = 0
        layer.layers[-1].compose.register_forward_pre_hook(self.count)

    def count(self, module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        self.calls += 1
        self.merges += inputs[0][..., 0].numel()


@pytest.mark.parametrize("length", LENGTHS)
def test_all_prefixes(length: int) -> None:
    layer = PRLSTM(2, 3)
    counter = Counter(layer)
    layer(torch.randn(length, 2))
    assert counter.merges < 2 * length
    assert counter.calls <= 2 * ceil(log2(length)) + 1


@pytest.mark.parametrize("length", LENGTHS)
def test_last(length: int) -> None:
    layer = PRLSTM(2, 3)
    counter = Counter(layer)
    layer(torch.randn(length, 2), output="last")
    assert counter.merges == length - 1
    assert counter.calls <= 2 * ceil(log2(length)) + 1


@pytest.mark.parametrize("output", [(0, 1), (0, 64), (3, 11), (90, 100), (60, 100)])
def test_range(output: tuple[int, int]) -> None:
    layer = PRLSTM(2, 3)
    counter = Counter(layer)
    layer(torch.randn(100, 2), output=output)
    assert counter.merges == Plan(output[1], output[0]).merges


@pytest.mark.parametrize("length", LENGTHS)
def test_stream(length: int) -> None:
    layer = PRLSTM(2, 3)
    counter = Counter(layer)
    state = None
    for seen, token in enumerate(torch.randn(length, 1, 2), 1):
        _, state = layer(token, state)
        (pending,) = state.pending
        kept = [node for levels in pending for node in levels if node is not None]
        assert len(kept) <= 2 * (floor(log2(seen)) + 1)
    assert counter.merges < 2 * length


def test_a_state_does_not_hold_the_memory_of_the_sequence() -> None:
    with torch.no_grad():
        _, state = PRLSTM(2, 3)(torch.randn(4095, 2))
    (pending,) = state.pending
    kept = [t for levels in pending for node in levels for t in node or ()]
    held = sum(t.untyped_storage().nbytes() for t in (*kept, *state.final))
    assert held <= 4 * 3 * 2 * (2 * 12 + 1)
