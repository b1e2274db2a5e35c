"""The fused gated block on a CUDA device, in every arithmetic that it knows."""

import pytest
import torch

from prlstm.kernels import gated
from tests.compare import TOLERANCE, assert_rel, relative_error
from tests.kernels.case import Case

pytestmark = pytest.mark.gpu
# relative RMS error against float64; the products of the backward pass are float32 in both
PRECISION = {"ieee": TOLERANCE[torch.float32], "tf32x3": (5e-6, 1e-5), "tf32": (2e-3, 5e-3)}
HALF = [torch.bfloat16, torch.float16]


@pytest.fixture(autouse=True)
def _needs_a_gpu() -> None:
    assert torch.cuda.is_available(), "these tests need a CUDA device"


@pytest.mark.parametrize("rows", [0, 1, 7, 130, 1025])
@pytest.mark.parametrize("hidden", [1, 5, 16, 33, 64, 137, 256, 300])
@pytest.mark.parametrize("states", [0, 1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, *HALF])
def test_is_the_definition(dtype: torch.dtype, states: int, hidden: int, rows: int) -> None:
    Case(states, hidden, (rows,), dtype=dtype).check()


@pytest.mark.parametrize("precision", PRECISION)
@pytest.mark.parametrize("hidden", [5, 137, 256])
@pytest.mark.parametrize("states", [0, 1, 2])
def test_precision_of_float32_products(states: int, hidden: int, precision: str) -> None:
    case = Case(states, hidden, (2, 65))
    case.check(precision=precision, tolerance=PRECISION[precision])


@pytest.mark.parametrize("hidden", [137, 256])
@pytest.mark.parametrize("states", [0, 1, 2])
def test_no_products_but_those_that_were_asked_for(states: int, hidden: int) -> None:
    """Fewer digits would be within a tolerance's reach, and more of them a waste of time."""
    case = Case(states, hidden, (1025,))
    want = case.definition({name: t.double() for name, t in case.leaves.items()})[1]
    # c is float32 in all of them: the errors are those of products
    errors = {name: relative_error(case.kernel(case.leaves, name)[1], want) for name in PRECISION}
    with torch.autocast("cuda", dtype=torch.bfloat16):
        errors["bfloat16"] = relative_error(case.kernel(case.leaves)[1], want)
    assert errors["ieee"] < 1e-6
    assert errors["tf32x3"] < errors["tf32"] / 30
    assert 100 * errors["ieee"] < errors["tf32"] < errors["bfloat16"] / 2


@pytest.mark.parametrize("dtype", [torch.float32, *HALF])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("seeds", [None, 3])
@pytest.mark.parametrize("states", [0, 1, 2])
def test_every_second_state_is_read_in_place(
    states: int, seeds: int | None, bias: bool, dtype: torch.dtype
) -> None:
    Case(states, 137, (3, 70), seeds, bias, dtype, spread=2).check()


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("outputs", ["h", "c"])
def test_a_gradient_may_be_missing(outputs: str, dtype: torch.dtype) -> None:
    Case(2, 64, (70,), dtype=dtype).check(outputs)


@pytest.mark.parametrize("dtype", [torch.float32, *HALF])
def test_gates_far_open_and_far_shut(dtype: torch.dtype) -> None:
    case = Case(2, 64, (70,), dtype=dtype)
    case.leaves["bias"] *= 1e3
    assert all(t.isfinite().all() for t in case.values("kernel", None).values())


@pytest.mark.parametrize("dtype", [torch.float32, *HALF])
def test_two_runs_give_equal_bits(dtype: torch.dtype) -> None:
    case = Case(2, 137, (64, 500), dtype=dtype)
    first, second = case.values("kernel", None), case.values("kernel", None)
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("half", HALF)
def test_autocast_makes_half_precision_products_of_float32(half: torch.dtype) -> None:
    case = Case(2, 64, (4, 70), spread=2)
    with torch.autocast("cuda", dtype=half):
        got = case.values("kernel", None)
    want = case.values("definition", torch.float64)
    assert {t.dtype for t in got.values()} == {torch.float32}
    for name, t in want.items():
        assert_rel(name, got[name], t, TOLERANCE[half][name[0] == "d"])


def test_offsets_beyond_32_bits() -> None:
    # 2^31 elements before the last rows; 17 GB in all
    rows, hidden = (1 << 31) // 256 + 64, 256
    h = torch.zeros(rows, hidden, device="cuda", dtype=torch.bfloat16)
    weight = torch.randn(3 * hidden, hidden, device="cuda", dtype=torch.bfloat16) / 16
    h[-64:] = torch.randn(64, hidden, device="cuda", dtype=torch.bfloat16)
    got = gated([h], [], weight)
    for mine, other in zip(got, gated([h[-64:]], [], weight), strict=True):
        assert_rel("end", mine[-64:], other, 1e-6)


# the compiler advises a lower precision, which is not what is compared here
@pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores:UserWarning")
def test_compiled_is_eager() -> None:
    case = Case(2, 64, (4, 70), spread=2)
    fast = torch.compile(case.kernel, fullgraph=True)
    for mine, other in zip(fast(case.leaves), case.kernel(case.leaves), strict=True):
        assert_rel("compiled", mine, other, TOLERANCE[torch.float32][0])
