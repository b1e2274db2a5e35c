"""Streams in slots that are changed in place: what the layer itself gives, for under 2 merges."""

import random
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from prlstm import PRLSTM, State, Streams
from tests.compare import TOLERANCE, assert_rel, assert_same
from tests.test_layer_laws import assert_states, cells, layers, make, tokens
from tests.test_layer_work import Counter

CHANCES = st.randoms(use_true_random=False)


@settings(max_examples=40)
@given(cells, layers, st.integers(1, 4), st.integers(1, 30), CHANCES)
def test_is_the_step_of_the_layer(
    cell: tuple[str, int], num_layers: int, rows: int, steps: int, chance: random.Random
) -> None:
    """Whatever happens to the slots: fed, begun anew, taken out and put back elsewhere."""
    layer = make(cell, num_layers)
    streams = Streams(layer, rows)
    h, state = layer.step(tokens(rows), None, [False] * rows)
    for _ in range(steps):
        what = chance.choice(["feed", "feed", "feed", "reset", "move"])
        if what == "feed":
            x, active = tokens(rows), [chance.random() < 0.7 for _ in range(rows)]
            with torch.no_grad():
                h, state = layer.step(x, state, active)
            got = streams.step(x, active)
            assert_same("h", got, h)
        else:
            row, other = chance.randrange(rows), chance.randrange(rows)
            order = list(range(rows))
            order[row] = other
            states = state.rows(order)
            if what == "reset":
                _, none = layer.step(tokens(1), None, [False])
                states = join_rows([none if n == row else state.rows([n]) for n in range(rows)])
                streams.reset([row])
            else:
                streams.put([row], streams.state([other]))
            state = states
        assert streams.counts == state.counts
        assert_states("state", streams.state(), state)
    out, _ = layer(x := tokens(rows, 3), streams.state())
    assert_same("the layer goes on", out, layer(x, state)[0])


def join_rows(states: list[State]) -> State:
    from prlstm.state import join

    return join(states, range(len(states)))


def test_a_state_is_a_copy_and_an_output_too() -> None:
    layer = make()
    streams = Streams(layer, 2)
    first = streams.step(tokens(2))
    state = streams.state()
    kept = [first.clone(), *(t.clone() for t in state)]
    for _ in range(5):
        streams.step(tokens(2))
    assert all(map(torch.equal, [first, *state], kept))
    other = Streams(layer, 3)
    other.put([2, 0], state)
    other.step(tokens(3))
    assert all(map(torch.equal, state, kept[1:]))
    assert other.counts == (2, 1, 2)


def test_the_layer_s_states_go_on_in_slots() -> None:
    layer, x = make(num_layers=2), tokens(3, 13)
    _, state = layer(x[:, :11], lengths=[11, 3, 7])
    streams = Streams(layer, 5)
    streams.step(tokens(5))
    streams.put([4, 0, 2], state)
    assert streams.counts == (3, 1, 7, 1, 11)
    h = streams.step(torch.zeros(5, 3).double().index_copy(0, torch.tensor([4, 0, 2]), x[:, 11]))
    want, _ = layer.step(x[:, 11], state)
    assert_same("h", h[[4, 0, 2]], want)


def test_only_what_is_touched_is_written() -> None:
    streams = Streams(make(), 4)
    for _ in range(7):
        streams.step(tokens(4))
    levels = [t for half in streams._slots.waiting(0) for node in half for t in node]
    before = [t.clone() for t in levels]
    streams.step(tokens(4), [False, False, True, False])
    after = [t for half in streams._slots.waiting(0) for node in half for t in node]
    # 8 tokens in one row: a block of level 3, which there was not
    assert len(after) == len(before) + 4
    assert all(any(t is old for t in after) for old in levels)
    assert all(map(torch.equal, levels, before))


def test_under_two_merges_a_token_wherever_rows_stand() -> None:
    layer = PRLSTM(2, 3)
    streams = Streams(layer, 64)
    for row in range(6):
        for _ in range(1 << row):
            streams.step(torch.randn(64, 2), np.arange(64) % 6 == row)
    counter = Counter(layer)
    for _ in range(64):
        streams.step(torch.randn(64, 2))
    assert counter.merges < 2 * 64 * 64


def test_weights_may_change() -> None:
    layer, x = make(), tokens(2, 6)
    streams = Streams(layer, 2)
    for n in range(3):
        streams.step(x[:, n])
    state = streams.state()
    with torch.no_grad():
        for p in layer.parameters():
            p.mul_(0.7)
        h = streams.step(x[:, 3])
        assert_same("h", h, layer.step(x[:, 3], state)[0])


def test_ids_and_autocast_of_when_it_was_made() -> None:
    layer = PRLSTM(3, 16, 2, dropout=0.5)
    ids = torch.randint(3, (4, 5))
    with torch.autocast("cpu", torch.bfloat16):
        streams = Streams(layer, 4)
    for n in range(5):
        h = streams.step(ids[:, n])
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        want = layer.eval()(ids.T)[0][-1]
    assert h.dtype == want.dtype
    assert not h.requires_grad
    assert_rel("h", h, want, 1e-3)
    exact = layer(ids.T)[0][-1]
    assert 1e-5 < (h - exact).norm() / exact.norm() < TOLERANCE[torch.bfloat16][0]


def test_reset_of_all() -> None:
    layer = make()
    streams = Streams(layer, 3)
    streams.step(tokens(3))
    streams.reset()
    assert streams.counts == (0, 0, 0)
    assert not streams.step(tokens(3), [False] * 3).any()
    assert not streams.state()[0].any()
    x = tokens(3)
    assert_same("h", streams.step(x), layer.step(x)[0])
    assert "rows=3, leaves seen: 1..1" in repr(streams)


LAYER = PRLSTM(3, 5)
STREAMS = Streams(LAYER, 2)
X = torch.randn(2, 3)
STATE = LAYER(torch.randn(6, 2, 3))[1]


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: Streams(3, 2), TypeError, "layer is a int: expected a PRLSTM"),
        (lambda: Streams(PRLSTM(3, 5, bidirectional=True), 2), ValueError, "layer is bidirectiona"),
        (lambda: Streams(LAYER, 0), ValueError, "rows=0: expected an integer >= 1"),
        (lambda: Streams(LAYER, True), ValueError, "rows=True"),
        (lambda: STREAMS.step(X[:1]), ValueError, r"x has shape \(1, 3\): expected 2 rows"),
        (lambda: STREAMS.step(X[0]), ValueError, r"x has shape \(3,\): expected 2 rows"),
        (lambda: STREAMS.step(X.double()), TypeError, "x has type torch.float64"),
        (lambda: STREAMS.step(X, [True]), ValueError, "active has type bool"),
        (lambda: STREAMS.step(torch.tensor([1, 3])), ValueError, "x holds the id 3"),
        (lambda: STREAMS.reset([2]), ValueError, r"rows\(\[2\]\): expected a slice"),
        (lambda: STREAMS.put([0, 0], STATE), ValueError, r"rows=\[0, 0\]: expected every slot"),
        (lambda: STREAMS.put([0], STATE), ValueError, r"state\[0\] has shape \(1, 2, 5\)"),
        (lambda: STREAMS.put([0, 1], tuple(STATE)), TypeError, "state is a tuple: expected"),
        (lambda: STREAMS.put([0, 1], Streams(PRLSTM(3, 5, cell="relu"), 2).state()), ValueError,
         "a state of cell 'relu', expected 'lstm'"),
    ],
)  # fmt: skip
def test_errors(call: Callable[[], object], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()


def test_a_layer_that_is_moved_is_an_error() -> None:
    layer = PRLSTM(3, 5)
    streams = Streams(layer, 2)
    layer.double()
    with pytest.raises(ValueError, match=r"weights of torch\.float64 on cpu: expected"):
        streams.step(X.double())


def test_a_step_that_fails_changes_no_count() -> None:
    streams = Streams(LAYER, 2)
    streams.step(X)
    with pytest.raises(TypeError):
        streams.step(X.double())
    assert streams.counts == (1, 1)
