"""States made in place are those of the cell itself."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from prlstm import PRLSTM, models
from prlstm.cells import LSTMCell, in_place
from prlstm.cells.in_place import InPlace, can_be_in_place
from tests.compare import TOLERANCE, assert_rel, assert_same

TYPES = [torch.float32, torch.float64]


def a_cell(refine: int = 1, bias: bool = True, dtype: torch.dtype = torch.float32) -> LSTMCell:
    cell = LSTMCell(3, 5, refine=refine, bias=bias, dtype=dtype)
    for name, weight in cell.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(weight)
    return cell


@pytest.mark.parametrize("refine", [0, 1, 2])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", TYPES)
@torch.no_grad()
def test_states_are_those_of_the_cell(refine: int, bias: bool, dtype: torch.dtype) -> None:
    cell = a_cell(refine, bias, dtype)
    made, x = InPlace(cell), torch.randn(2, 6, 3, dtype=dtype)
    leaves = made.leaf(x)
    for mine, other in zip(leaves, cell.leaf(x), strict=True):
        assert_same("leaf", mine, other)
    before = [t.clone() for t in leaves]
    # neighbours, and rows that are not
    for left, right in ((slice(0, 6, 2), slice(1, 6, 2)), (slice(0, 2), slice(3, 5))):
        pair = [tuple(t[:, part] for t in leaves) for part in (left, right)]
        for mine, other in zip(made.merge(*pair), cell.merge(*pair), strict=True):
            assert_same("merge", mine, other)
    assert all(map(torch.equal, leaves, before))


@pytest.mark.parametrize(("left", "right"), [((0, 8, 2), (1, 8, 2)), ((1, 8, 2), (0, 8, 2))])
@pytest.mark.parametrize("of_one", [True, False])
@torch.no_grad()
def test_which_states_are_neighbours(
    left: tuple[int, ...], right: tuple[int, ...], of_one: bool
) -> None:
    """In one memory and in this order, and nowhere else."""
    cell, states = a_cell(), torch.randn(2, 8, 5)
    other = states if of_one else torch.randn(2, 8, 5)
    pair = [(t[0, slice(*s)], t[1, slice(*s)]) for t, s in ((states, left), (other, right))]
    for mine, want in zip(InPlace(cell).merge(*pair), cell.merge(*pair), strict=True):
        assert_same("merge", mine, want)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("piece", [1, 60, 1 << 20])
@torch.no_grad()
def test_trees_are_the_definition(
    dtype: torch.dtype, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All prefixes of odd lengths, some rows at a time or all; in several layers."""
    monkeypatch.setattr(in_place, "PIECE", piece)
    layer = PRLSTM(3, 5, num_layers=2, batch_first=True, dtype=dtype)
    x = torch.randn(3, 41, 3, dtype=dtype)
    got, state = layer(x)
    with torch.enable_grad():
        want, want_state = copy.deepcopy(layer).double()(x.double())
    assert_rel("out", got, want, TOLERANCE[dtype][0])
    for mine, other in zip(state, want_state, strict=True):
        assert_rel("state", mine, other, TOLERANCE[dtype][0])


@torch.no_grad()
def test_words_to_logits_are_the_same() -> None:
    model = models.build("pr_lstm", "parity_check", hidden_size=16, seed=0)
    words = torch.randint(2, (9, 70), generator=torch.Generator())
    got = model(words)
    with torch.enable_grad():
        want = model.double()(words)
    assert_rel("logits", got, want, TOLERANCE[torch.float32][0])


@torch.no_grad()
def test_states_of_another_type_are_merged_as_ever() -> None:
    cell = a_cell()
    pair = [(torch.randn(4, 5), torch.randn(4, 5, dtype=torch.float64)) for _ in range(2)]
    got, want = InPlace(cell).merge(*pair), cell.merge(*pair)
    assert [t.dtype for t in got] == [t.dtype for t in want]
    assert all(map(torch.equal, got, want))


@pytest.mark.parametrize("dtype", TYPES)
@torch.no_grad()
def test_gates_may_be_tiny_or_saturated(dtype: torch.dtype) -> None:
    """The tangent is right relative to itself, and nothing overflows; NaN is passed on."""
    cell, tiny = LSTMCell(1, 4, dtype=dtype), torch.finfo(dtype).smallest_normal
    nn.init.ones_(cell.leaf.weight)
    x = torch.tensor([0.0, tiny, 1e-4, -0.3, 9, 25, 1e4, -1e4, 1e30, -1e30], dtype=dtype)[:, None]
    for mine, want in zip(InPlace(cell).leaf(x), cell.double().leaf(x.double()), strict=True):
        torch.testing.assert_close(
            mine.double(), want, rtol=8 * torch.finfo(dtype).eps, atol=torch.finfo(dtype).tiny
        )
    for bad in (torch.nan, torch.inf, -torch.inf):
        given = torch.full((1, 1), bad, dtype=dtype)
        for mine, want in zip(InPlace(cell.to(dtype)).leaf(given), cell.leaf(given), strict=True):
            torch.testing.assert_close(mine, want, equal_nan=True)


@pytest.mark.parametrize("dtype", TYPES)
@torch.no_grad()
def test_cell_states_may_be_large(dtype: torch.dtype) -> None:
    cell, c = a_cell(dtype=dtype), torch.tensor([[1e3, -1e3, 50, -50, 21]], dtype=dtype)
    pair = [(torch.randn(1, 5, dtype=dtype), c) for _ in range(2)]
    for mine, want in zip(InPlace(cell).merge(*pair), cell.merge(*pair), strict=True):
        assert_same("merge", mine, want)


class OtherCell(LSTMCell):
    pass


class OtherBlock(nn.Module):
    pass


def with_another_block() -> LSTMCell:
    cell = a_cell()
    cell.refine[0] = OtherBlock()
    return cell


@torch.no_grad()
def test_only_ordinary_cells_are_computed_in_place() -> None:
    cell = a_cell()
    assert can_be_in_place(cell)
    for other in (OtherCell(3, 5), with_another_block(), a_cell().bfloat16(), a_cell().to("meta")):
        assert not can_be_in_place(other)
    assert not torch.func.vmap(lambda x: x * can_be_in_place(cell))(torch.ones(2)).any()
    with torch.enable_grad():
        assert not can_be_in_place(cell)
    with torch.autocast("cpu"):
        assert not can_be_in_place(cell)
    with forward_ad.dual_level():
        assert not can_be_in_place(cell)


@torch.no_grad()
def test_forward_derivatives_without_backward_ones() -> None:
    layer, x = PRLSTM(3, 5, batch_first=True, dtype=torch.float64), torch.randn(2, 7, 3).double()

    def last(x: Tensor) -> Tensor:
        out: Tensor = layer(x, output="last")[0]
        return out

    derivative = torch.func.jvp(last, (x,), (torch.ones_like(x),))[1]
    step = 1e-6
    want = (last(x + step) - last(x - step)) / (2 * step)
    assert_rel("derivative", derivative, want, 1e-7)


def test_hooks_of_blocks_are_called() -> None:
    """Whoever counts merges, as the examples do, counts them all."""
    layer, seen = PRLSTM(3, 5, batch_first=True), []
    cell = layer.layers[0]
    assert isinstance(cell, LSTMCell)
    cell.compose.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape[1]))
    with torch.no_grad():
        layer(torch.randn(2, 64, 3), output="last")
    assert sum(seen) == 63
