"""A layer computed by kernels, and what the definition of the tree makes of it in float64."""

import copy

import torch
from torch import Tensor

from prlstm import PRLSTM
from prlstm.cells import LSTMCell
from prlstm.tree import tree_scan_naive
from tests.compare import TOLERANCE, assert_rel
from tests.kernels.case import DEVICE

FEATURES = 3
Values = dict[str, Tensor]
Tolerance = tuple[float, float]


def make(hidden: int, **options: object) -> PRLSTM:
    """A layer with weights that are not as small as those of a fresh one."""
    given = {"backend": "triton", "batch_first": True, "device": DEVICE} | options
    layer = PRLSTM(FEATURES, hidden, **given)  # type: ignore[arg-type]
    with torch.no_grad():
        for p in layer.parameters():
            p.add_(torch.randn_like(p) * (0.3 if p.dim() == 1 else 0.3 * p.shape[1] ** -0.5))
    return layer


def tokens(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, FEATURES, device=DEVICE).to(dtype)


def definition(layer: PRLSTM, x: Tensor) -> tuple[Tensor, Tensor]:
    """H and c after every token: each prefix by itself, straight from the definition."""
    cell = layer.layers[0]
    assert isinstance(cell, LSTMCell)
    return prefixes(cell, cell.leaf(x))


def prefixes(cell: LSTMCell, leaves: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    h, c = (t.unbind(1) for t in leaves)
    states = tree_scan_naive(cell.merge, list(zip(h, c, strict=True)))
    return torch.stack([h for h, _ in states], 1), torch.stack([c for _, c in states], 1)


def gradients(layer: PRLSTM, x: Tensor, h: Tensor, c: Tensor) -> Values:
    """h, the last c, and all gradients of a loss of both."""
    generator = torch.Generator().manual_seed(1)
    loss = torch.zeros((), device=h.device)
    for t in (h, c):
        loss = loss + (t * torch.randn(t.shape, generator=generator).to(t)).sum()
    inputs = {"x": x} | dict(layer.named_parameters())
    found = torch.autograd.grad(loss, list(inputs.values()), allow_unused=True)
    given = {
        f"d{name}": torch.zeros_like(t) if grad is None else grad
        for (name, t), grad in zip(inputs.items(), found, strict=True)
    }
    return {"h": h.detach(), "c": c.detach(), **given}


def kernel_values(layer: PRLSTM, x: Tensor, read: tuple[int, int]) -> Values:
    x = x.detach().requires_grad_()
    h, (_, c) = layer(x, output=read)
    return gradients(layer, x, h, c[0])


def exact_values(layer: PRLSTM, x: Tensor, read: tuple[int, int]) -> Values:
    layer, x = copy.deepcopy(layer).double(), x.detach().double().requires_grad_()
    h, c = definition(layer, x[:, : read[1]])
    return gradients(layer, x, h[:, read[0] : read[1]], c[:, read[1] - 1])


def assert_values(got: Values, want: Values, tolerance: Tolerance) -> None:
    assert set(got) == set(want)
    for name, t in want.items():
        assert_rel(name, got[name], t, tolerance[name[0] == "d"])


def check(
    layer: PRLSTM,
    x: Tensor,
    read: tuple[int, int] | None = None,
    tolerance: Tolerance | None = None,
) -> None:
    """The kernels are the definition in float64, for the same rounded weights and tokens."""
    read = (0, x.shape[1]) if read is None else read
    want = exact_values(layer, x, read)
    tolerance = tolerance or TOLERANCE[x.dtype]
    assert_values(kernel_values(layer, x, read), want, tolerance)
    # without gradients less is kept, in other memory
    with torch.no_grad():
        h, (_, c) = layer(x, output=read)
    assert_rel("h", h, want["h"], tolerance[0])
    assert_rel("c", c[0], want["c"], tolerance[0])
