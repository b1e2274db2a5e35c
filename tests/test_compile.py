"""`torch.compile(fullgraph=True)`: the compiled layer is the eager one, for a fixed length."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch._dynamo.config
from torch import Tensor

from prlstm import PRLSTM, State
from tests.compare import TOLERANCE, assert_rel, assert_same
from tests.kernels.case import DEVICE

# more programs than these are an error
FEW_PROGRAMS = torch._dynamo.config.patch(recompile_limit=3)
SIZES = (2, 3, 5, 8)


@pytest.fixture(autouse=True)
def _forget_compiled_code() -> Iterator[None]:
    yield
    torch.compiler.reset()


def compiled(layer: PRLSTM) -> Callable[..., Any]:
    return torch.compile(layer, fullgraph=True, backend="aot_eager")


def assert_compiled_is_eager(layer: PRLSTM, length: int, output: str | tuple[int, int]) -> None:
    x = torch.randn(2, length, 3)
    out, state = compiled(layer)(x, output=output)
    want, want_state = layer(x, output=output)
    assert isinstance(state, State)
    assert_same("out", out, want)
    for mine, other in zip(state, want_state, strict=True):
        assert_same("state", mine, other)


@pytest.mark.parametrize("output", ["all", "last"])
def test_compiled_is_eager(output: str) -> None:
    assert_compiled_is_eager(PRLSTM(3, 5, batch_first=True), 13, output)


@pytest.mark.slow
@pytest.mark.parametrize("output", ["all", "last", (0, 1)])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("length", [1, 2, 13, 16, 33])
def test_compiled_is_eager_in_every_form(
    length: int, both: bool, output: str | tuple[int, int]
) -> None:
    layer = PRLSTM(3, 5, num_layers=2, bidirectional=both, batch_first=True)
    assert_compiled_is_eager(layer, length, output)


# the compiler itself looks at the gradient of the state, which is not a leaf
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
def test_compiled_streaming_is_eager() -> None:
    layer, x = PRLSTM(3, 5, batch_first=True), torch.randn(2, 3, 3)
    fast = compiled(layer)
    _, state = fast(x)
    out, _ = fast(x, state)
    _, want_state = layer(x)
    assert_same("out", out, layer(x, want_state)[0])


def layer_by(backend: str) -> PRLSTM:
    """A layer where its backend can compute it."""
    if backend == "triton":
        pytest.importorskip("triton")
    device = DEVICE if backend == "triton" else "cpu"
    return PRLSTM(3, 5, batch_first=True, backend=backend, device=device)


# a compilation takes seconds
SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("backend", "with_gradient"),
    [
        ("eager", False),
        ("triton", True),
        pytest.param("eager", True, marks=SLOW),
        pytest.param("triton", False, marks=SLOW),
    ],
)
def test_one_compilation_serves_every_batch_size(backend: str, with_gradient: bool) -> None:
    layer = layer_by(backend)
    fast = compiled(layer)
    with torch.set_grad_enabled(with_gradient), FEW_PROGRAMS:
        for rows in SIZES:
            x = torch.randn(rows, 3, 3, device=next(layer.parameters()).device)
            assert_same("out", fast(x)[0], layer(x)[0])


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`:UserWarning")
@pytest.mark.parametrize("backend", [pytest.param("eager", marks=SLOW), "triton"])
def test_so_it_does_for_ids(backend: str) -> None:
    """What is looked up depends on how many rows there are: some are compiled once more."""
    layer = layer_by(backend)
    fast = compiled(layer)
    with torch.no_grad(), FEW_PROGRAMS:
        for rows in SIZES:
            ids = torch.randint(3, (rows, 6), device=next(layer.parameters()).device)
            assert_rel("out", fast(ids)[0], layer(ids)[0], TOLERANCE[torch.float32][0])


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`:UserWarning")
def test_one_compilation_serves_ids_that_go_on() -> None:
    layer = PRLSTM(3, 5, batch_first=True)
    fast = compiled(layer)
    with torch.no_grad(), FEW_PROGRAMS:
        for rows in SIZES:
            ids = torch.randint(3, (rows, 14))
            _, state = layer(ids[:, :3])
            want, _ = layer(ids[:, 3:], state)
            assert_rel("out", fast(ids[:, 3:], state)[0], want, TOLERANCE[torch.float32][0])


def test_detached_and_mixed_states_can_be_compiled() -> None:
    layer, x, y = PRLSTM(3, 5, batch_first=True), torch.randn(2, 3, 3), torch.randn(2, 2, 3)

    def two_calls(x: Tensor, y: Tensor) -> Tensor:
        _, state = layer(x, lengths=[3, 1])
        out: Tensor = layer(y, state.detach())[0]
        return out

    fast = torch.compile(two_calls, fullgraph=True, backend="aot_eager")
    assert_same("out", fast(x, y), two_calls(x, y))


def test_compiled_gradients_are_eager() -> None:
    layer, x = PRLSTM(3, 5, batch_first=True), torch.randn(2, 11, 3)
    compiled(layer)(x)[0].square().sum().backward()
    got = {key: p.grad.clone() for key, p in layer.named_parameters() if p.grad is not None}
    layer.zero_grad()
    layer(x)[0].square().sum().backward()
    assert set(got) == set(dict(layer.named_parameters()))
    for key, parameter in layer.named_parameters():
        assert parameter.grad is not None
        assert_rel(key, got[key], parameter.grad, TOLERANCE[torch.float32][1])
