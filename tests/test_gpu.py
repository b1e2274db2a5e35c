"""The layer on a CUDA device: the same function, outputs and gradients."""

import copy

import pytest
import torch
from torch.nn.utils.rnn import PackedSequence, pack_sequence, unpack_sequence

from prlstm import PRLSTM, State
from tests.compare import TOLERANCE, assert_rel, assert_same

pytestmark = pytest.mark.gpu
LENGTHS = [1, 2, 3, 7, 8, 9, 40, 41, 500]


@pytest.fixture(autouse=True)
def _needs_a_gpu() -> None:
    assert torch.cuda.is_available(), "these tests need a CUDA device"


def gradients(layer: PRLSTM, x: torch.Tensor, weight: torch.Tensor) -> dict[str, torch.Tensor]:
    layer.zero_grad()
    (layer(x)[0] * weight).sum().backward()
    return {key: p.grad.clone() for key, p in layer.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("hidden_size", [1, 17, 137, 256])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_cuda_is_the_float64_definition(dtype: torch.dtype, hidden_size: int, length: int) -> None:
    layer = PRLSTM(3, hidden_size, batch_first=True, dtype=dtype, device="cuda")
    x, weight = (torch.randn(2, length, n, dtype=dtype, device="cuda") for n in (3, hidden_size))
    exact = copy.deepcopy(layer).cpu().double()
    forward, backward = TOLERANCE[dtype]
    assert_rel("out", layer(x)[0], exact(x.cpu().double())[0], forward)
    want = gradients(exact, x.cpu().double(), weight.cpu().double())
    got = gradients(layer, x, weight)
    assert set(got) == set(want)
    for key in want:
        assert_rel(key, got[key], want[key], backward)


@pytest.mark.parametrize(("cell", "refine"), [("lstm", 1), ("relu", 1), ("gru", 0)])
@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_autocast_keeps_states_in_float32(cell: str, refine: int, half: torch.dtype) -> None:
    layer = PRLSTM(6, 64, cell=cell, refine=refine, batch_first=True, device="cuda")
    x = torch.randn(4, 40, 6, device="cuda")
    exact, _ = copy.deepcopy(layer).double()(x.double())
    with torch.autocast("cuda", dtype=half):
        out, state = layer(x)
    assert {out.dtype, *(t.dtype for t in state)} == {torch.float32}
    assert_rel("out", out, exact, TOLERANCE[half][0])


def test_packed_and_streamed() -> None:
    layer = PRLSTM(3, 32, num_layers=2, device="cuda", dtype=torch.float64)
    sequences = [torch.randn(n, 3, dtype=torch.float64, device="cuda") for n in (5, 17, 1, 9)]
    packed = pack_sequence(sequences, enforce_sorted=False)
    out, state = layer(packed)
    assert isinstance(out, PackedSequence)
    more = torch.randn(6, 4, 3, dtype=torch.float64, device="cuda")
    tail, _ = layer(more, state)
    for row, (x, got) in enumerate(zip(sequences, unpack_sequence(out), strict=True)):
        alone, _ = layer(torch.cat([x, more[:, row]]))
        assert_same("packed", got, alone[: len(x)])
        assert_same("continued", tail[:, row], alone[len(x) :])


def test_state_moves_between_devices() -> None:
    layer = PRLSTM(3, 32, device="cuda", dtype=torch.float64)
    x = torch.randn(11, 2, 3, dtype=torch.float64, device="cuda")
    _, state = layer(x)
    want, _ = layer(x, state)
    got, _ = copy.deepcopy(layer).cpu()(x.cpu(), state.to("cpu"))
    assert_rel("moved", got, want, TOLERANCE[torch.float64][0])
    with pytest.raises(ValueError, match=r"hx\[0\] is on cpu: expected cuda:0"):
        layer(x, state.to("cpu"))


def test_two_runs_give_equal_bits() -> None:
    layer = PRLSTM(3, 137, batch_first=True, device="cuda")
    x, weight = (torch.randn(8, 100, n, device="cuda") for n in (3, 137))
    first, second = gradients(layer, x, weight), gradients(layer, x, weight)
    assert all(torch.equal(first[key], second[key]) for key in first)


# the compiler advises a lower precision, which is not what is compared here
@pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores:UserWarning")
def test_compiled_is_eager() -> None:
    layer = PRLSTM(3, 64, batch_first=True, device="cuda")
    x = torch.randn(4, 40, 3, device="cuda")
    out, state = torch.compile(layer, fullgraph=True)(x)
    assert isinstance(state, State)
    assert_rel("out", out, layer(x)[0], TOLERANCE[torch.float32][0])
