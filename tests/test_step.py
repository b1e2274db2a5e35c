"""One token for every row: any interleaving of steps is the whole of every row."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence

from prlstm import PRLSTM, State
from tests.compare import TOLERANCE, assert_rel, assert_same
from tests.test_layer_laws import assert_states, cells, layers, make, tokens
from tests.test_layer_work import Counter

CHANCES = st.randoms(use_true_random=False)
HALF = torch.bfloat16


@settings(max_examples=30)
@given(cells, layers, st.integers(1, 4), st.integers(1, 18), CHANCES)
def test_masked_steps_are_the_whole_of_every_row(
    cell: tuple[str, int], num_layers: int, rows: int, steps: int, chance: random.Random
) -> None:
    """Outputs, the state, and what comes when the layer goes on from there."""
    layer, x, more = make(cell, num_layers), tokens(rows, steps), tokens(rows, 5)
    active = torch.tensor([[chance.random() < 0.6 for _ in range(steps)] for _ in range(rows)])
    state, outs = None, []
    with torch.no_grad():
        for t in range(steps):
            h, state = layer.step(x[:, t], state, active[:, t])
            outs.append(h)
        assert state is not None
        out, after = layer(more, state)
        assert state.counts == tuple(active.sum(1).tolist())
        for row in range(rows):
            fed = x[row, active[row]]
            want, at_the_end = layer(torch.cat([fed, more[row]])[None])
            assert_same("out", out[row], want[0, len(fed) :])
            assert_states("state", after.rows([row]), at_the_end)
            # zeros before the first token, then what the last one gave
            shown = torch.cat([torch.zeros_like(want[0, :1]), want[0]])
            assert_same("h", torch.stack(outs, 1)[row], shown[active[row].cumsum(0)])


@settings(max_examples=25)
@given(cells, layers, st.lists(st.integers(1, 9), min_size=1, max_size=3), st.integers(1, 5))
def test_a_step_is_one_token_with_its_gradients(
    cell: tuple[str, int], num_layers: int, lengths: list[int], steps: int
) -> None:
    """From the state of packed input: outputs, state, and gradients of weights and tokens."""
    layer = make(cell, num_layers)
    heads = [tokens(n) for n in lengths]
    found = []
    for way in ("step", "call"):
        torch.manual_seed(3)
        x = tokens(len(lengths), steps).requires_grad_()
        _, state = layer(pack_sequence(heads, enforce_sorted=False))
        outs = []
        for token in x.unbind(1):
            if way == "step":
                h, state = layer.step(token, state)
            else:
                out, state = layer(token[:, None], state)
                h = out[:, 0]
            outs.append(h)
        loss = sum((out * (k + 1)).sum() for k, out in enumerate((*outs, *state)))
        leaves = [x, *layer.parameters()]
        found.append(([*outs, *state, *torch.autograd.grad(loss, leaves)], state.counts))
    (mine, counts), (other, want) = found
    assert counts == want
    for got, value in zip(mine, other, strict=True):
        assert_rel("value", got, value, TOLERANCE[torch.float64][1])


def test_gradients_flow_through_masked_steps() -> None:
    """As they flow through the rows alone."""
    layer, x = make(), tokens(3, 6)
    active = torch.tensor([[1, 1, 0, 1, 1, 1], [0, 1, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0]]).bool()
    mine, other = (x.clone().requires_grad_() for _ in range(2))
    state, loss = None, torch.zeros(())
    for t in range(6):
        h, state = layer.step(mine[:, t], state, active[:, t])
        # an output that is put out again counts again
        loss = loss + h.square().sum() * (t + 1)
    grads = torch.autograd.grad(loss, [mine, *layer.parameters()])
    want = torch.zeros(())
    for row in range(2):
        out = layer(other[row : row + 1, active[row]])[0][0]
        place = active[row].cumsum(0) - 1
        shown = [out[place[t]].square().sum() * (t + 1) for t in range(6) if place[t] >= 0]
        want = want + sum(shown)
    assert_rel("loss", loss, want, 1e-12)
    wanted = torch.autograd.grad(want, [other, *layer.parameters()])
    for got, value in zip(grads, wanted, strict=True):
        assert_rel("gradient", got, value, 1e-10)


def test_under_two_merges_a_token_wherever_rows_stand() -> None:
    layer = PRLSTM(2, 3)
    lengths = np.random.default_rng(0).integers(1, 300, 32)
    with torch.no_grad():
        _, state = layer(pack_sequence([torch.randn(n, 2) for n in lengths], enforce_sorted=False))
        assert len(set(state.counts)) > 25
        counter = Counter(layer)
        for _ in range(64):
            _, state = layer.step(torch.randn(32, 2), state)
    assert counter.merges < 2 * 32 * 64
    assert counter.calls <= 64 * 10


def test_a_state_is_not_changed() -> None:
    layer = make(num_layers=2)
    _, state = layer(tokens(3, 7))
    kept = [t.clone() for t in _tensors(state)]
    x = tokens(3)
    first, _ = layer.step(x, state, [True, False, True])
    again, _ = layer.step(x, state, [True, False, True])
    assert torch.equal(first, again)
    assert all(map(torch.equal, _tensors(state), kept))


def _tensors(state: State) -> list[Tensor]:
    return torch.utils._pytree.tree_leaves(state)


def test_levels_that_no_row_uses_are_dropped() -> None:
    layer = make()
    _, state = layer(tokens(2, 7))
    _, state = layer.step(tokens(2), state)
    assert [node is None for node in state.pending[0].blocks] == [True, True, True, False]
    assert state.seen == 8
    _, state = layer.step(tokens(2), state, [False, True])
    assert [node is None for node in state.pending[0].folds] == [False, True, True, False]


def test_no_active_row_and_no_state() -> None:
    layer = make(num_layers=2)
    h, state = layer.step(tokens(3), None, torch.zeros(3).bool())
    assert torch.equal(h, torch.zeros(3, 5).double())
    assert state.counts == (0, 0, 0)
    assert [t.shape for t in state] == [(2, 3, 5)] * 2
    x = tokens(3, 4)
    assert_same("out", layer(x, state)[0], layer(x)[0])


def test_ids_one_sequence_and_a_plain_state() -> None:
    layer = make()
    ids = torch.randint(3, (4,))
    eye = torch.eye(3, dtype=torch.float64)
    assert_same("ids", layer.step(ids)[0], layer.step(eye[ids])[0])
    x = tokens(6)
    whole, end = layer(x)
    state = None
    for n, token in enumerate(x):
        h, state = layer.step(token, state)
        assert_same("h", h, whole[n])
    assert_states("state", state, end)
    assert_same("id", layer.step(ids[0])[0], layer(ids[:1])[0][0])
    plain = tuple(torch.randn(1, 4, 5, dtype=torch.float64) for _ in range(2))
    x = tokens(4, 3)
    state = plain
    for n in range(3):
        h, state = layer.step(x[:, n], state)
    out, end = layer(x, plain)
    assert_same("h", h, out[:, -1])
    assert_states("state", state, end)
    kept, _ = layer.step(x[:, 0], plain, [False] * 4)
    assert torch.equal(kept, plain[0][0])


def test_dropout_between_layers_while_training() -> None:
    layer = PRLSTM(3, 50, 2, dropout=0.5)
    x = torch.randn(4, 3)
    assert not torch.equal(layer.step(x)[0], layer.step(x)[0])
    layer.eval()
    assert torch.equal(layer.step(x)[0], layer.step(x)[0])


def test_half_precision() -> None:
    """Of weights, and under autocast: as when the layer is called."""
    for layer, kind in ((PRLSTM(3, 16, dtype=HALF), HALF), (PRLSTM(3, 16), torch.float32)):
        x = torch.randn(11, 4, 3).to(kind)
        with torch.autocast("cpu", HALF, enabled=kind != HALF):
            out, end = layer(x)
            state = None
            for token in x:
                h, state = layer.step(token, state)
        assert h.dtype == out.dtype
        assert [t.dtype for t in state] == [t.dtype for t in end]
        assert_rel("h", h, out[-1], TOLERANCE[HALF][0])


def test_a_saved_state_goes_on(tmp_path: Path) -> None:
    layer, x = make(), tokens(3, 4)
    state = None
    for n in range(4):
        _, state = layer.step(x[:, n], state, [True, n % 2 == 0, False])
    state.save(tmp_path / "state.safetensors")
    again = State.load(tmp_path / "state.safetensors")
    more = tokens(3)
    assert_same("h", layer.step(more, again)[0], layer.step(more, state)[0])


LAYER = PRLSTM(3, 5, batch_first=True)
X = torch.randn(2, 3)
STATE = LAYER(torch.randn(2, 6, 3))[1]


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: PRLSTM(3, 5, bidirectional=True).step(X), ValueError, "layer is bidirectional"),
        (lambda: LAYER.step([1.0]), TypeError, "x is a list: expected a tensor"),
        (lambda: LAYER.step(torch.randn(2, 4)), ValueError, r"x has shape \(2, 4\): expected 3"),
        (lambda: LAYER.step(X[None]), ValueError, r"x has shape \(1, 2, 3\): expected \(B, D\)"),
        (lambda: LAYER.step(torch.tensor([0, 3])), ValueError, "x holds the id 3: expected 0"),
        (lambda: LAYER.step(X.double()), TypeError, "x has type torch.float64: expected"),
        (lambda: LAYER.step(X.to("meta")), ValueError, "x is on meta: expected cpu"),
        (lambda: LAYER.step(X, STATE.rows([0])), ValueError, r"state\[0\] has shape \(1, 1, 5\)"),
        (lambda: LAYER.step(X, [True, True]), TypeError, r"state\[0\] is of type bool: expected a"),
        (lambda: LAYER.step(X, 3), TypeError, "state is a int: expected a State"),
        (lambda: LAYER.step(X[0], STATE), ValueError, "a state of a batch, expected one of one"),
        (lambda: LAYER.step(X, None, [True]), ValueError, r"active has type bool and shape \(1,\)"),
        (lambda: LAYER.step(X, None, [1, 0]), ValueError, "active has type int64 .* 2 booleans"),
        (lambda: LAYER.step(X, None, True), ValueError, r"active has type bool and shape \(\)"),
    ],
)  # fmt: skip
def test_errors(call: Callable[[], object], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()


def test_a_cell_of_ones_own() -> None:
    """Whose state is three tensors, one of them integers."""

    class Own(nn.Module):
        def __init__(self, input_size: int, hidden_size: int, **_: object) -> None:
            super().__init__()
            self.state_sizes = (hidden_size, 2, 1)
            self.linear = nn.Linear(input_size, hidden_size)

        def leaf(self, x: Tensor) -> tuple[Tensor, ...]:
            h = self.linear(x)
            return h, h[..., :2], torch.ones_like(h[..., :1], dtype=torch.long)

        def merge(self, left: tuple[Tensor, ...], right: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return torch.tanh(left[0] - 2 * right[0]), left[1], left[2] + right[2]

    layer = PRLSTM(3, 5, cell=Own)
    x = torch.randn(9, 2, 3)
    state = None
    for token in x:
        h, state = layer.step(token, state)
    out, end = layer(x)
    assert_same("h", h, out[-1])
    assert torch.equal(state[2], end[2])
    assert state[2].tolist() == [[[9], [9]]]
