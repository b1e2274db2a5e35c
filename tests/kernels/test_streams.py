"""Streams by kernels: the same for any counts and masks, whatever is in memory nobody wrote."""

import copy

import pytest
import torch
from torch import Tensor

from prlstm import PRLSTM, Streams
from prlstm.kernels import streams as kernel_streams
from prlstm.kernels.streams import KernelSlots
from tests.compare import TOLERANCE, assert_rel
from tests.kernels.case import DEVICE
from tests.kernels.test_tree import long
from tests.kernels.tree_case import make, tokens

pytest.importorskip("triton")
FLOAT = TOLERANCE[torch.float32][0]


def spoil(streams: Streams) -> None:
    """What no stream keeps is NaN."""
    slots = streams._slots
    assert isinstance(slots, KernelSlots)
    used = torch.tensor(streams.counts)
    for layer in range(streams.layer.num_layers):
        for half in slots.waiting(layer):
            for level, node in enumerate(half):
                empty = (used >> level & 1 == 0).to(DEVICE)
                for t in node:
                    t[empty] = float("nan")


def check(
    layer: PRLSTM, streams: Streams, x: Tensor, active: Tensor, tolerance: float = FLOAT
) -> None:
    """Some steps, all outputs and the states at the end, as plain PyTorch has them in float64."""
    exact = copy.deepcopy(layer).double()
    exact.backend = "eager"
    with torch.no_grad():
        state = streams.state().to(torch.float64) if any(streams.counts) else None
        for n in range(x.shape[1]):
            spoil(streams)
            token = x[:, n]
            got = streams.step(token, active[:, n])
            wide = token.double() if token.is_floating_point() else token
            want, state = exact.step(wide, state, active[:, n])
            assert got.dtype == layer.layers[0].leaf.weight.dtype
            assert_rel("h", got, want, tolerance)
    assert state is not None
    assert streams.counts == state.counts
    for mine, other in zip(streams.state(), state, strict=True):
        assert_rel("state", mine, other, tolerance)


def some(rows: int, steps: int) -> Tensor:
    return torch.rand(rows, steps, generator=torch.Generator().manual_seed(0)) < 0.7


@pytest.mark.parametrize(
    ("hidden", "refine", "num_layers", "bias"),
    [(5, 1, 1, True), (33, 0, 1, False), long(5, 2, 1, True), long(5, 1, 2, True)],
)
def test_is_the_definition(hidden: int, refine: int, num_layers: int, bias: bool) -> None:
    layer = make(hidden, refine=refine, num_layers=num_layers, bias=bias)
    streams = Streams(layer, 3)
    assert isinstance(streams._slots, KernelSlots)
    check(layer, streams, tokens(3, 4), some(3, 4))


@pytest.mark.slow
def test_more_levels_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_streams, "FIRST_LEVELS", 1)
    layer = make(5)
    check(layer, Streams(layer, 2), tokens(2, 8), some(2, 8))


def test_rows_of_many_tiles_from_anywhere() -> None:
    """Of every number of merges some rows, in an order that is not theirs."""
    layer, rows = make(5), 70
    lengths = [1 + (7 * row) % 13 for row in range(rows)]
    with torch.no_grad():
        exact = copy.deepcopy(layer)
        exact.backend = "eager"
        _, state = exact(tokens(rows, 13), lengths=lengths)
    streams = Streams(layer, rows)
    streams.put(slice(None), state)
    check(layer, streams, tokens(rows, 2), some(rows, 2))


def test_ids_and_slots_that_begin_anew() -> None:
    layer = make(5)
    streams = Streams(layer, 3)
    check(layer, streams, torch.randint(3, (3, 3), device=DEVICE), some(3, 3))
    streams.reset([1])
    check(layer, streams, tokens(3, 2), some(3, 2))
    streams.reset()
    assert not streams.step(tokens(3), [False] * 3).any()


def test_weights_are_read_at_every_step() -> None:
    layer, x = make(5), tokens(2, 4)
    streams = Streams(layer, 2)
    check(layer, streams, x[:, :2], some(2, 2))
    with torch.no_grad():
        layer.layers[0].leaf.weight.mul_(0.5)
        layer.layers[0].compose.weight = torch.nn.Parameter(-layer.layers[0].compose.weight)
    check(layer, streams, x[:, 2:], some(2, 2))


def test_a_step_with_gradients_is_one_token() -> None:
    """The value, whose blocks are operators."""
    layer, x = make(5), tokens(2, 2)
    exact = copy.deepcopy(layer).double()
    exact.backend = "eager"
    found = []
    for one, given in ((layer, x), (exact, x.double())):
        state, loss = None, torch.zeros((), device=DEVICE)
        for n in range(2):
            h, state = one.step(given[:, n], state, [True, n == 1])
            loss = loss + h.square().sum()
        grads = torch.autograd.grad(loss + state[1].sum(), list(one.parameters()))
        found.append([h, *state, *grads])
    for got, want in zip(*found, strict=True):
        assert_rel("value", got, want, TOLERANCE[torch.float32][1])
