"""The read-out by kernels is that of plain PyTorch, and so are its gradients."""

import pytest
import torch
from torch import Tensor
from torch.func import vmap

from prlstm.kernels.choose import Products
from prlstm.kernels.readout import relu_linear
from tests.compare import TOLERANCE, assert_rel
from tests.kernels.case import DEVICE

pytest.importorskip("triton")
TYPES = [torch.float32] if DEVICE == "cpu" else [torch.float32, torch.bfloat16, torch.float16]


def exact(h: Tensor, weight: Tensor, bias: Tensor, operand: torch.dtype) -> Tensor:
    """In float64, of operands that are rounded first."""
    return torch.relu(h.double()) @ weight.to(operand).double().mT + bias.double()


@pytest.mark.parametrize("operand", TYPES)
@pytest.mark.parametrize(
    ("batch", "length", "hidden", "classes"),
    [(128, 1, 256, 2), (3, 5, 137, 5), (1, 1, 1, 1), (2, 97, 17, 17), (70, 2, 300, 3)],
)
def test_logits_and_gradients(
    operand: torch.dtype, batch: int, length: int, hidden: int, classes: int
) -> None:
    # every second place, as of a range of prefixes
    whole = torch.randn(batch, length + 2, hidden, device=DEVICE).to(operand).requires_grad_()
    weight = torch.randn(classes, hidden, device=DEVICE, requires_grad=True)
    bias = torch.randn(classes, device=DEVICE, requires_grad=True)
    h = whole[:, 2:]
    logits = relu_linear(h, weight, bias, Products(operand, "ieee"))
    assert logits.dtype == torch.float32
    leaves = [t.detach().double().requires_grad_() for t in (whole, weight, bias)]
    want = exact(leaves[0][:, 2:], leaves[1], leaves[2], operand)
    forward, backward = TOLERANCE[operand]
    assert_rel("logits", logits.detach(), want.detach(), forward)
    given = torch.randn_like(logits)
    logits.backward(given)
    want.backward(given.double())
    for name, mine, other in zip("hwb", (whole, weight, bias), leaves, strict=True):
        assert mine.grad is not None
        assert other.grad is not None
        assert mine.grad.dtype == mine.dtype
        assert_rel(name, mine.grad, other.grad, backward)


def test_seeds_are_mapped_over() -> None:
    seeds, products = 3, Products(torch.float32, "ieee")
    h = torch.randn(seeds, 5, 7, 24, device=DEVICE, requires_grad=True)
    weight = torch.randn(seeds, 4, 24, device=DEVICE, requires_grad=True)
    bias = torch.randn(seeds, 4, device=DEVICE, requires_grad=True)
    logits = vmap(lambda *one: relu_linear(*one, products))(h, weight, bias)
    given = torch.randn_like(logits)
    found = torch.autograd.grad(logits, (h, weight, bias), given)
    for seed in range(seeds):
        leaves = [t[seed].detach().double().requires_grad_() for t in (h, weight, bias)]
        want = exact(*leaves, torch.float32)
        assert_rel("logits", logits[seed].detach(), want.detach(), 1e-6)
        expected = torch.autograd.grad(want, leaves, given[seed].double())
        for mine, other in zip(found, expected, strict=True):
            assert_rel("gradient", mine[seed], other, 3e-6)


def test_equal_bits() -> None:
    h, weight = (torch.randn(s, 64, device=DEVICE) for s in (999, 5))
    bias, products = torch.randn(5, device=DEVICE), Products(torch.float32, "ieee")
    found = []
    for _ in range(2):
        leaves = [t.clone().requires_grad_() for t in (h[None], weight, bias)]
        relu_linear(*leaves, products).square().sum().backward()
        found.append([leaf.grad for leaf in leaves])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


def test_what_is_no_number_stays_none() -> None:
    """A maximum of the hardware would make zero of it, and a run that diverged would go on."""
    h = torch.ones(1, 2, 8, device=DEVICE)
    h[0, 1, 3] = float("nan")
    h.requires_grad_()
    weight, bias = torch.ones(2, 8, device=DEVICE), torch.zeros(2, device=DEVICE)
    logits = relu_linear(h, weight, bias, Products(torch.float32, "ieee"))
    assert logits.isfinite().all(-1).tolist() == [[True, False]]
