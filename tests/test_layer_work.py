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

    def __init__(self, layer: PRLSTM, reverse: bool = False) -> None:
        self.calls = self.merges = 0
        cell = layer.layers[-1].reverse if reverse else layer.layers[-1]
        cell.compose.register_forward_pre_hook(self.count)

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
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage() for t in kept}
    # 12 blocks and as many prefixes, the first of which is a block: h and c, 3 floats each
    assert sum(storage.nbytes() for storage in storages.values()) == (2 * 12 - 1) * 2 * 3 * 4


@pytest.mark.parametrize(
    ("output", "lengths", "merges"),
    [
        # padding behind the longest row is not looked at
        ("last", [20, 10], 2 * Plan(20, 9).merges),
        ("all", [20, 10], 2 * Plan(20).merges),
        ((0, 5), [20, 10], 2 * Plan(5).merges),
        ((90, 95), [20, 10], 2 * Plan(20, 9).merges),
        ("last", [100, 100], 2 * 99),
        ("last", [64, 64], 2 * 63),
    ],
)
def test_mixed_lengths(output: str | tuple[int, int], lengths: list[int], merges: int) -> None:
    layer = PRLSTM(2, 3, batch_first=True)
    counter = Counter(layer)
    layer(torch.randn(2, 100, 2), lengths=lengths, output=output)
    assert counter.merges == merges


@pytest.mark.parametrize("lengths", [None, [100, 99]])
@pytest.mark.parametrize("output", ["last", "all", (99, 100), (0, 1), (40, 45)])
def test_the_reverse_direction_reads_what_it_must(
    output: str | tuple[int, int], lengths: list[int] | None
) -> None:
    layer = PRLSTM(2, 3, batch_first=True, bidirectional=True)
    counter = Counter(layer, reverse=True)
    layer(torch.randn(2, 100, 2), lengths=lengths, output=output)
    start, stop = {"all": (0, 100), "last": (0, 1)}.get(output, output)
    # seen from the end, the shorter row begins one position earlier
    earliest = 100 - stop - (lengths is not None)
    assert counter.merges == 2 * Plan(100 - start, max(0, earliest)).merges
