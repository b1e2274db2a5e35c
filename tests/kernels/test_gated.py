"""The fused gated block: outputs and every gradient are those of the definition in float64."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from prlstm.kernels import launch
from prlstm.kernels.gated import gated, gated_forward
from tests.compare import TOLERANCE, assert_rel
from tests.kernels.case import DEVICE, Case

pytest.importorskip("triton")


@pytest.mark.parametrize("rows", [0, 1, 70])
@pytest.mark.parametrize("hidden", [1, 33, 137])
@pytest.mark.parametrize("states", [0, 1, 2])
def test_is_the_definition(states: int, hidden: int, rows: int) -> None:
    Case(states, hidden, (rows,)).check()


@pytest.mark.parametrize("states", [0, 1, 2])
@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (2, 1, 2, 3), (2, 0)])
def test_any_leading_dimensions(lead: tuple[int, ...], states: int) -> None:
    Case(states, 5, lead).check()


@pytest.mark.parametrize("lead", [(7,), (1, 1), (3, 7)])
@pytest.mark.parametrize("seeds", [None, 2])
@pytest.mark.parametrize("states", [0, 1, 2])
def test_every_second_state_is_read_in_place(
    states: int, seeds: int | None, lead: tuple[int, ...]
) -> None:
    Case(states, 17, lead, seeds, spread=2).check()


def test_states_of_unlike_strides() -> None:
    # as going down the tree: prefixes stand side by side, blocks do not
    case = Case(2, 5, (3, 4))
    h, c = case.arguments(case.leaves)
    apart = [torch.stack([t, t], -2).flatten(1, 2)[:, 1::2] for t in (h[1], c[1])]
    assert apart[0].stride() != h[0].stride()
    weight, bias = case.leaves["weight"], case.leaves["bias"]
    got = gated([h[0], apart[0]], [c[0], apart[1]], weight, bias)
    for mine, other in zip(got, case.kernel(case.leaves), strict=True):
        assert torch.equal(mine, other)


def test_time_first() -> None:
    h, c = torch.randn(2, 7, 3, 5, device=DEVICE).unbind()
    weight = torch.randn(25, 10, device=DEVICE)
    left, right = slice(0, 6, 2), slice(1, 6, 2)
    got = gated([h[left], h[right]], [c[left], c[right]], weight)
    h, c = h.movedim(0, 1).contiguous(), c.movedim(0, 1).contiguous()
    want = gated([h[:, left], h[:, right]], [c[:, left], c[:, right]], weight)
    for mine, other in zip(got, want, strict=True):
        # rows that stand elsewhere in a tile may be rounded otherwise
        assert_rel("time first", mine, other.movedim(0, 1), TOLERANCE[torch.float32][0])


@pytest.mark.parametrize("states", [0, 1, 2])
@pytest.mark.parametrize("bias", [True, False])
def test_seeds_have_weights_of_their_own(states: int, bias: bool) -> None:
    Case(states, 5, (2, 3), seeds=3, bias=bias).check()


@pytest.mark.parametrize("states", [0, 1, 2])
@pytest.mark.parametrize("outputs", ["h", "c"])
def test_a_gradient_may_be_missing(states: int, outputs: str) -> None:
    Case(states, 5, (7,), bias=False).check(outputs)


@pytest.mark.parametrize("states", [0, 1, 2])
def test_gates_far_open_and_far_shut(states: int) -> None:
    case = Case(states, 16, (7,))
    case.leaves["bias"] *= 12
    case.check()
    # the slope of such a gate is small, but it is no less exact
    got, want = case.values("kernel", None)["dbias"], case.values("definition", torch.float64)
    torch.testing.assert_close(got.cpu().double(), want["dbias"].cpu(), rtol=1e-4, atol=1e-12)
    case.leaves["bias"] *= 1e3
    assert all(t.isfinite().all() for t in case.values("kernel", None).values())


def test_a_gradient_that_is_one_number_everywhere() -> None:
    case = Case(2, 5, (3, 4))
    leaves = {name: t.requires_grad_() for name, t in case.leaves.items()}
    exact = {name: t.detach().double().requires_grad_() for name, t in leaves.items()}
    torch.stack([t.sum() for t in case.kernel(leaves)]).sum().backward()
    torch.stack([t.sum() for t in case.definition(exact)]).sum().backward()
    for name, t in exact.items():
        assert t.grad is not None
        mine = leaves[name].grad
        assert mine is not None
        assert_rel(name, mine, t.grad, TOLERANCE[torch.float32][1])


def test_two_runs_give_equal_bits() -> None:
    case = Case(2, 33, (3, 7), spread=2)
    first, second = case.values("kernel", None), case.values("kernel", None)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_half_precision_operands() -> None:
    # the interpreter cannot multiply bfloat16
    Case(2, 33, (2, 7), dtype=torch.float16, spread=2).check()


def test_autocast_makes_half_precision_products_of_float32() -> None:
    case = Case(2, 16, (2, 7))
    with torch.autocast(DEVICE, dtype=torch.float16):
        got = case.values("kernel", None)
    want = case.values("definition", torch.float64)
    assert {t.dtype for t in got.values()} == {torch.float32}
    for name, t in want.items():
        assert_rel(name, got[name], t, TOLERANCE[torch.float16][name[0] == "d"])
    assert not torch.equal(got["c"], case.values("kernel", None)["c"])


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each launch, whether it kept what a backward pass needs."""
    calls: list[bool] = []
    plain: Callable[..., None] = launch.forward

    def forward(*arguments: object, **named: object) -> None:
        calls.append(arguments[5] is not None)
        plain(*arguments, **named)

    monkeypatch.setattr(launch, "forward", forward)
    return calls


def test_gates_are_kept_for_a_backward_pass_alone(kept: list[bool]) -> None:
    case = Case(1, 5, (3,))
    case.kernel(case.leaves)
    case.leaves["bias"].requires_grad_()
    with torch.no_grad():
        case.kernel(case.leaves)
    assert kept == [False, False]
    case.kernel(case.leaves)
    assert kept == [False, False, True]


def test_a_gradient_needs_what_was_not_kept() -> None:
    x, weight = torch.randn(1, 1, 3, 5, device=DEVICE), torch.randn(1, 15, 5, device=DEVICE)
    weight.requires_grad_()
    h, _, _ = gated_forward([x], [], weight, None, torch.float32, "ieee", False)
    with pytest.raises(RuntimeError, match=r"gates of shape \(1, 0, 48\): expected 3 rows"):
        h.sum().backward()


ALL = ["h0", "h1", "c0", "c1", "weight", "bias"]


@pytest.mark.parametrize(
    "mapped", [ALL, ["weight", "bias"], ["bias"], ["h0", "c1"], ALL[:4]], ids=" ".join
)
def test_vmap_is_a_loop(mapped: list[str], kept: list[bool]) -> None:
    many, one = Case(2, 5, (2, 3), seeds=3).leaves, Case(2, 5, (2, 3))
    leaves = {name: many[name] if name in mapped else one.leaves[name] for name in ALL}
    dims = {name: 0 if name in mapped else None for name in ALL}

    def values(function: Callable[[dict[str, Tensor]], list[Tensor]]) -> list[Tensor]:
        fresh = {name: t.detach().clone().requires_grad_() for name, t in leaves.items()}
        outputs = function(fresh)
        loss = sum((t.square().sum() for t in outputs), torch.zeros((), device=DEVICE))
        return [*outputs, *torch.autograd.grad(loss, list(fresh.values()))]

    def loop(given: dict[str, Tensor]) -> list[Tensor]:
        each = [
            one.kernel({name: t[s] if name in mapped else t for name, t in given.items()})
            for s in range(3)
        ]
        return [torch.stack([pair[j] for pair in each]) for j in range(2)]

    def vmapped(given: dict[str, Tensor]) -> list[Tensor]:
        return list(torch.func.vmap(one.kernel, in_dims=(dims,))(given))

    want = values(loop)
    kept.clear()
    for j, (mine, other) in enumerate(zip(values(vmapped), want, strict=True)):
        assert_rel(f"{j}", mine, other, TOLERANCE[torch.float32][1])
    assert kept == [True]
    with torch.no_grad():
        vmapped(leaves)
    assert kept == [True, False]


def test_vmap_in_vmap() -> None:
    x, weight = torch.randn(2, 3, 4, 5, device=DEVICE), torch.randn(2, 15, 5, device=DEVICE)
    inner = torch.func.vmap(lambda x, w: gated([x], [], w), in_dims=(0, None))
    got = torch.func.vmap(inner)(x, weight)
    for s in range(2):
        for mine, other in zip(got, gated([x[s]], [], weight[s]), strict=True):
            assert torch.equal(mine[s], other)


@pytest.mark.parametrize("states", [2])
def test_registered_as_pytorch_wants_it(states: int) -> None:
    case = Case(states, 5, (2, 3), seeds=1)
    leaves = {name: t.requires_grad_() for name, t in case.leaves.items()}
    h, c = case.arguments(leaves)
    weight, bias = leaves["weight"], leaves["bias"]
    torch.library.opcheck(gated_forward, (h, c, weight, bias, torch.float32, "ieee", True))


# the compiler itself looks at the gradient of what is not a leaf
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
def test_compiled_is_eager() -> None:
    case = Case(2, 5, (2, 3), seeds=2, spread=2)
    one = Case(2, 5, (2, 3), spread=2)

    def alone(leaves: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        return case.kernel(leaves)

    def seeds(leaves: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        return torch.func.vmap(one.kernel)(leaves)

    for function in (alone, seeds):
        fast = torch.compile(function, fullgraph=True, backend="aot_eager")
        results = []
        for call in (function, fast):
            leaves = {n: t.detach().clone().requires_grad_() for n, t in case.leaves.items()}
            h, c = call(leaves)
            (h.square().sum() + c.sum()).backward()
            results.append([h, c, *(t.grad for t in leaves.values())])
        for mine, other in zip(*results, strict=True):
            assert_rel(function.__name__, mine, other, TOLERANCE[torch.float32][0])
    torch.compiler.reset()
