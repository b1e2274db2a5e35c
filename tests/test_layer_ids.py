"""Ids of one-hot tokens, in the place of these; and long sequences, read in chunks."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from prlstm import PRLSTM, dispatch, tasks
from tests.compare import assert_rel

EYE = torch.eye(3, dtype=torch.float64)


def make(**options: object) -> PRLSTM:
    return PRLSTM(3, 4, batch_first=True, dtype=torch.float64, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [{}, {"num_layers": 2}, {"bidirectional": True}, {"cell": "relu"}, {"checkpoint": True}],
    ids=str,
)
@pytest.mark.parametrize("output", ["all", "last", (3, 17)])
@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8])
def test_ids_are_one_hot_tokens(options: dict, output: object, dtype: torch.dtype) -> None:
    layer = make(**options)
    ids = torch.randint(3, (30, 21)).to(dtype)
    found = []
    for x in (ids, EYE[ids.long()]):
        out, state = layer(x, output=output)
        gradients = torch.autograd.grad(out.square().sum(), list(layer.parameters()))
        found.append([out, *state, *gradients])
    for got, want in zip(*found, strict=True):
        assert_rel("value", got, want, 1e-12)


def test_ids_in_every_layout() -> None:
    layer = make()
    ids, lengths = torch.randint(3, (4, 9)), [9, 3, 5, 1]
    want, _ = layer(EYE[ids], lengths=lengths)
    got, _ = layer(ids, lengths=lengths)
    assert_rel("padded", got, want, 1e-12)
    packed = pack_padded_sequence(ids, torch.tensor(lengths), True, enforce_sorted=False)
    out, _ = layer(packed)
    assert isinstance(out, PackedSequence)
    tokens = pack_padded_sequence(EYE[ids], torch.tensor(lengths), True, enforce_sorted=False)
    assert_rel("packed", out.data, layer(tokens)[0].data, 1e-12)
    assert_rel("one sequence", layer(ids[0])[0], layer(EYE[ids[0]])[0], 1e-12)
    time_first = PRLSTM(3, 4, dtype=torch.float64)
    assert_rel("time first", time_first(ids.T)[0], time_first(EYE[ids.T])[0], 1e-12)
    assert len(layer.trace(ids)[0].blocks) == 4


@given(st.integers(1, 200), st.integers(1, 200), st.integers(1, 3), st.booleans())
def test_a_long_sequence_is_read_in_chunks(head: int, tail: int, rows: int, by_ids: bool) -> None:
    """To the same last state, from wherever it begins, and with the same state to go on from."""
    layer = make()
    ids = torch.randint(3, (rows, head + tail))
    x = ids if by_ids else EYE[ids]
    want, after = layer(x, output="last")
    with torch.no_grad(), pytest.MonkeyPatch.context() as patch:
        patch.setitem(dispatch.STATES, "cpu", 16)
        _, state = layer(x[:, :head], output="last")
        got, state = layer(x[:, head:], state, output="last")
    assert_rel("last", got, want, 1e-12)
    assert state.seen == after.seen
    more = torch.randint(3, (rows, 3))
    assert_rel("on", layer(more, state)[0], layer(more, after)[0], 1e-12)


def test_memory_of_a_long_sequence_is_flat() -> None:
    """No call of the merge sees more than a chunk."""
    layer, most = make(), 0

    def look(module: object, inputs: tuple[torch.Tensor, ...], output: object) -> None:
        nonlocal most
        most = max(most, inputs[0].shape[:-1].numel())

    layer.layers[0].compose.register_forward_hook(look)
    with torch.inference_mode():
        layer(torch.zeros(2, 5 * dispatch.STATES["cpu"], 3, dtype=torch.float64), output="last")
    assert most <= dispatch.STATES["cpu"] // 2


def test_a_tape_of_small_integers() -> None:
    task = tasks.get("parity_check")
    words = torch.tensor([[0, 1, 1]], dtype=torch.uint8)
    tape = tasks.tape(task, words)
    assert tape.tokens.dtype == torch.uint8
    assert tape.tokens.tolist() == [[0, 1, 1, 2]]
