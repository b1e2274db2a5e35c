"""Streams on a CUDA device: steps replayed from a graph are those of plain PyTorch."""

import copy

import pytest
import torch

from prlstm import PRLSTM, Streams
from prlstm.kernels.streams import KernelSlots
from tests.compare import TOLERANCE, assert_rel
from tests.kernels.test_gpu import HALF, PRECISION
from tests.kernels.test_streams import check, some
from tests.kernels.tree_case import make, tokens

pytestmark = pytest.mark.gpu
BF16 = torch.bfloat16


@pytest.fixture(autouse=True)
def _needs_a_gpu() -> None:
    assert torch.cuda.is_available(), "these tests need a CUDA device"


@pytest.mark.parametrize("dtype", [torch.float32, *HALF])
@pytest.mark.parametrize("hidden", [17, 256])
@pytest.mark.parametrize("rows", [1, 70, 1100])
def test_is_the_definition(rows: int, hidden: int, dtype: torch.dtype) -> None:
    """Over several levels, of which the first memory has no room for all."""
    layer = make(hidden, dtype=dtype)
    streams = Streams(layer, rows)
    with torch.no_grad():
        _, state = layer(tokens(rows, 250, dtype=dtype))
    streams.put(slice(None), state)
    check(layer, streams, tokens(rows, 12, dtype=dtype), some(rows, 12), TOLERANCE[dtype][0])


@pytest.mark.parametrize("refine", [0, 1, 2])
@pytest.mark.parametrize("num_layers", [1, 2])
def test_stages_and_layers_from_the_first_token_on(num_layers: int, refine: int) -> None:
    layer = make(64, num_layers=num_layers, refine=refine, dtype=BF16)
    streams = Streams(layer, 100)
    check(layer, streams, tokens(100, 40, dtype=BF16), some(100, 40), 2 * TOLERANCE[BF16][0])
    graph = streams._slots._graph  # type: ignore[attr-defined]
    assert graph is not None
    streams.step(tokens(100, dtype=BF16), [False] * 100)
    assert streams._slots._graph is graph  # type: ignore[attr-defined]


def test_steps_that_nobody_waits_for() -> None:
    """The host is many steps ahead of the device, each with a plan of its own."""
    layer, rows, steps = make(256, dtype=BF16), 1024, 200
    x, active = tokens(steps, rows, dtype=BF16), some(rows, steps)
    ahead, behind = Streams(layer, rows), Streams(layer, rows)
    outs = [ahead.step(x[n], active[:, n]) for n in range(steps)]
    for n, out in enumerate(outs):
        want = behind.step(x[n], active[:, n])
        torch.cuda.synchronize()
        assert torch.equal(out, want), n
    assert ahead.counts == tuple(active.sum(1).tolist())


def test_weights_may_change_in_any_way() -> None:
    layer, x = make(64, dtype=BF16), tokens(30, 6, dtype=BF16)
    streams = Streams(layer, 30)
    check(layer, streams, x[:, :2], some(30, 2), TOLERANCE[BF16][0])
    with torch.no_grad():
        # PyTorch knows nothing of the first
        layer.layers[0].leaf.weight.data.mul_(0.5)
        layer.layers[0].refine[0].weight.mul_(0.5)
    check(layer, streams, x[:, 2:4], some(30, 2), TOLERANCE[BF16][0])
    layer.layers[0].compose.weight = torch.nn.Parameter(-layer.layers[0].compose.weight)
    check(layer, streams, x[:, 4:], some(30, 2), TOLERANCE[BF16][0])


def test_precision_of_when_it_was_made() -> None:
    layer, ids = make(64, backend=None), torch.randint(3, (50, 9), device="cuda")
    assert not isinstance(Streams(layer, 50)._slots, KernelSlots)
    with torch.autocast("cuda", dtype=BF16):
        streams = Streams(layer, 50)
    assert isinstance(streams._slots, KernelSlots)
    check(layer, streams, ids, some(50, 9), TOLERANCE[BF16][0])
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    try:
        streams = Streams(layer, 50)
    finally:
        torch.backends.cuda.matmul.fp32_precision = before
    check(layer, streams, ids, some(50, 9), PRECISION["tf32"][0])


def test_plain_slots_and_a_mask_on_the_device() -> None:
    layer = PRLSTM(3, 32, device="cuda")
    streams = Streams(layer, 5)
    exact, state = copy.deepcopy(layer).double(), None
    for _ in range(9):
        x, active = tokens(5), torch.rand(5, device="cuda") < 0.7
        with torch.no_grad():
            want, state = exact.step(x.double(), state, active)
        assert_rel("h", streams.step(x, active), want, 1e-5)


def test_on_another_stream_of_the_device() -> None:
    layer, x = make(64, dtype=BF16), tokens(7, 20, dtype=BF16)
    one, other = Streams(layer, 7), Streams(layer, 7)
    want = [one.step(token) for token in x.unbind(1)]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        got = [other.step(token) for token in x.unbind(1)]
    torch.cuda.synchronize()
    assert all(map(torch.equal, got, want))


@pytest.mark.parametrize("backend", [None, "triton"])
def test_gradients_of_a_step(backend: str | None) -> None:
    """Of the value, in half precision: by PyTorch's own operators, and by those of blocks."""
    layer, x = make(64, dtype=BF16, backend=backend), tokens(6, 5, dtype=BF16)
    exact = copy.deepcopy(layer).double()
    exact.backend = "eager"
    found = []
    for one, given in ((layer, x), (exact, x.double())):
        state, loss = None, torch.zeros((), device="cuda", dtype=torch.float64)
        for n in range(5):
            h, state = one.step(given[:, n], state, some(6, 5)[:, n])
            loss = loss + h.double().square().sum()
        found.append([h, *torch.autograd.grad(loss, list(one.parameters()))])
    for got, want in zip(*found, strict=True):
        assert_rel("value", got, want, 2 * TOLERANCE[BF16][1])
