"""Laws of the layer, as properties: cuts, padding, rows, packing, ranges, directions."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence, unpack_sequence

from prlstm import PRLSTM, State
from prlstm.lengths import RowLengths, reverse_rows
from tests.compare import assert_same

D, H = 3, 5
CELLS = [("lstm", 1), ("lstm", 0), ("relu", 2), ("gru", 0)]

cells = st.sampled_from(CELLS)
layers = st.integers(1, 3)
row_lengths = st.lists(st.integers(1, 40), min_size=1, max_size=5)


def make(cell: tuple[str, int] = ("lstm", 1), num_layers: int = 1, **more: bool) -> PRLSTM:
    torch.manual_seed(1)
    layer = PRLSTM(
        D,
        H,
        num_layers,
        cell=cell[0],
        refine=cell[1],
        batch_first=True,
        dtype=torch.float64,
        **more,
    )
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return layer


def tokens(*shape: int) -> Tensor:
    return torch.randn(*shape, D, dtype=torch.float64)


def assert_states(name: str, got: State, want: State) -> None:
    assert got.counts == want.counts
    for mine, other in zip(got, want, strict=True):
        assert_same(name, mine, other)


@given(cells, layers, st.lists(st.integers(1, 30), min_size=1, max_size=6))
def test_whole_is_any_cuts(cell: tuple[str, int], num_layers: int, cuts: list[int]) -> None:
    layer, x = make(cell, num_layers), tokens(2, sum(cuts))
    whole, at_the_end = layer(x)
    pieces, state = [], None
    for piece in x.split(cuts, 1):
        out, state = layer(piece, state)
        pieces.append(out)
    assert state is not None
    assert_same("cuts", torch.cat(pieces, 1), whole)
    assert_states("state", state, at_the_end)


@given(cells, st.integers(1, 70))
def test_whole_is_token_by_token(cell: tuple[str, int], length: int) -> None:
    layer, x = make(cell), tokens(2, length)
    whole, _ = layer(x)
    outs, state = [], None
    for token in x.split(1, 1):
        out, state = layer(token, state)
        outs.append(out)
    assert_same("streamed", torch.cat(outs, 1), whole)


@given(cells, layers, st.integers(1, 40), st.integers(1, 40))
def test_right_padding_never_changes_a_prefix(
    cell: tuple[str, int], num_layers: int, length: int, padding: int
) -> None:
    layer, x = make(cell, num_layers), tokens(2, length)
    alone, _ = layer(x)
    padded, _ = layer(torch.cat([x, 100 * tokens(2, padding)], 1))
    assert_same("prefix", padded[:, :length], alone)


@given(cells, layers, st.booleans(), st.integers(1, 40), st.integers(1, 4))
def test_rows_are_independent(
    cell: tuple[str, int], num_layers: int, both: bool, length: int, rows: int
) -> None:
    layer, x = make(cell, num_layers, bidirectional=both), tokens(rows, length)
    together, _ = layer(x)
    for row in range(rows):
        alone, _ = layer(x[row : row + 1])
        assert_same("row", together[row : row + 1], alone)


@given(cells, layers, st.booleans(), row_lengths)
def test_lengths_are_a_loop_over_sequences(
    cell: tuple[str, int], num_layers: int, both: bool, lengths: list[int]
) -> None:
    layer = make(cell, num_layers, bidirectional=both)
    x = tokens(len(lengths), max(lengths) + 2)
    out, state = layer(x, lengths=lengths)
    last, last_state = layer(x, lengths=torch.tensor(lengths), output="last")
    assert_states("last", last_state, state)
    for row, n in enumerate(lengths):
        alone, alone_state = layer(x[row, :n])
        assert_same("out", out[row, :n], alone)
        assert (out[row, n:] == 0).all()
        assert_same("last", last[row], layer(x[row, :n], output="last")[0])
        for mine, other in zip(state, alone_state, strict=True):
            assert_same("final", mine[:, row], other)


@given(cells, st.booleans(), st.booleans(), row_lengths)
def test_packed_is_a_loop_over_sequences(
    cell: tuple[str, int], both: bool, enforce_sorted: bool, lengths: list[int]
) -> None:
    layer = make(cell, 2, bidirectional=both)
    lengths = sorted(lengths, reverse=True) if enforce_sorted else lengths
    sequences = [tokens(n) for n in lengths]
    packed = pack_sequence(sequences, enforce_sorted)
    out, state = layer(packed)
    assert isinstance(out, PackedSequence)
    assert_packed_alike(out, packed)
    for row, (x, got) in enumerate(zip(sequences, unpack_sequence(out), strict=True)):
        alone, alone_state = layer(x)
        assert_same("out", got, alone)
        for mine, other in zip(state, alone_state, strict=True):
            assert_same("final", mine[:, row], other)


def assert_packed_alike(got: PackedSequence, like: PackedSequence) -> None:
    assert torch.equal(got.batch_sizes, like.batch_sizes)
    for mine, other in (
        (got.sorted_indices, like.sorted_indices),
        (got.unsorted_indices, like.unsorted_indices),
    ):
        assert (mine is None) == (other is None)
        assert mine is None or other is None or torch.equal(mine, other)


@given(cells, layers, st.integers(0, 20), row_lengths, st.data())
def test_rows_at_different_counts_go_on(
    cell: tuple[str, int], num_layers: int, head: int, lengths: list[int], data: st.DataObject
) -> None:
    """Together for `head` tokens, then apart, then apart from different counts."""
    layer, rows = make(cell, num_layers), len(lengths)
    w, x, y, z = (tokens(rows, n) for n in (head, max(lengths), 9, 2))
    more = data.draw(st.lists(st.integers(1, 9), min_size=rows, max_size=rows))
    state = layer(w)[1] if head else None
    first, state = layer(x, state, lengths=lengths)
    second, state = layer(y, state, lengths=more)
    third, _ = layer(z, state)
    for row, (n, m) in enumerate(zip(lengths, more, strict=True)):
        alone, _ = layer(torch.cat([w[row], x[row, :n], y[row, :m], z[row]]))
        assert_same("first", first[row, :n], alone[head : head + n])
        assert_same("second", second[row, :m], alone[head + n : head + n + m])
        assert_same("third", third[row], alone[head + n + m :])


def test_levels_that_no_row_reaches_are_kept() -> None:
    """After 12 tokens two blocks wait; a few more leave the prefix over both as it is."""
    layer, head, x, tail = make(), tokens(2, 12), tokens(2, 2), tokens(2, 6)
    _, state = layer(head)
    _, state = layer(x, state, lengths=[1, 2])
    out, _ = layer(tail, state)
    for row, n in enumerate((1, 2)):
        alone, _ = layer(torch.cat([head[row], x[row, :n], tail[row]]))
        assert_same("tail", out[row], alone[12 + n :])


@given(cells, row_lengths, st.data())
def test_rows_of_a_state_are_states(
    cell: tuple[str, int], lengths: list[int], data: st.DataObject
) -> None:
    layer, rows = make(cell), len(lengths)
    _, state = layer(tokens(rows, max(lengths)), lengths=lengths)
    index = data.draw(st.lists(st.integers(0, rows - 1), min_size=1, max_size=4))
    more = tokens(rows, 3)
    whole, _ = layer(more, state)
    some = state.rows(index)
    for one in (some, some.detach(), some.to("cpu", copy=True)):
        assert_same("rows", layer(more[index], one)[0], whole[index])


@given(cells, layers, st.booleans(), st.data())
def test_ranges_are_the_same_positions_of_all(
    cell: tuple[str, int], num_layers: int, both: bool, data: st.DataObject
) -> None:
    length = data.draw(st.integers(1, 40))
    start = data.draw(st.integers(0, length - 1))
    stop = data.draw(st.integers(start + 1, length))
    lengths = data.draw(st.none() | st.lists(st.integers(1, length), min_size=3, max_size=3))
    layer, x = make(cell, num_layers, bidirectional=both), tokens(3, length)
    whole, final = layer(x, lengths=lengths)
    some, state = layer(x, lengths=lengths, output=(start, stop))
    assert_same("range", some, whole[:, start:stop])
    last, last_state = layer(x, lengths=lengths, output="last")
    assert_same("last", last[:, :H], final[0][-1 - both])
    assert_states("last", last_state, final)
    # forward, the state stands after `stop` tokens
    cut = None if lengths is None else [min(n, stop) for n in lengths]
    h_n, h_cut = state[0], layer(x[:, :stop], lengths=cut)[1][0]
    if not both:
        assert_states("state", state, layer(x[:, :stop], lengths=cut)[1])
    elif num_layers == 1:
        assert_same("forward", h_n[0], h_cut[0])
        for row, n in enumerate(lengths or [length] * 3):
            # the reverse direction stands after token `start`, or after a shorter row's last
            left = x[row, min(start, n - 1) : n]
            assert_same("reverse", h_n[1, row], layer(left)[1][0][1])


@given(cells, st.none() | st.lists(st.integers(1, 20), min_size=2, max_size=2))
def test_bidirectional_is_two_runs(cell: tuple[str, int], lengths: list[int] | None) -> None:
    both, x = make(cell, bidirectional=True), tokens(2, 20)
    ahead, back = make(cell), make(cell)
    keys = both.state_dict()
    ahead.load_state_dict({k: v for k, v in keys.items() if ".reverse." not in k})
    back.load_state_dict(
        {k.replace(".reverse", ""): v for k, v in keys.items() if ".reverse." in k}
    )
    out, state = both(x, lengths=lengths)
    rows = RowLengths.read(lengths, x)
    forward, forward_state = ahead(x, lengths=lengths)
    backward, backward_state = back(reverse_rows(x, rows), lengths=lengths)
    assert_same("forward", out[..., :H], forward)
    assert_same("reverse", out[..., H:], reverse_rows(backward, rows))
    for got, one, other in zip(state, forward_state, backward_state, strict=True):
        assert_same("final", got, torch.cat([one, other]))


@given(row_lengths)
def test_reversing_twice_changes_nothing(lengths: list[int]) -> None:
    x = tokens(len(lengths), max(lengths) + 1)
    rows = RowLengths.read(lengths, x)
    assert torch.equal(reverse_rows(reverse_rows(x, rows), rows), x)


@given(cells, st.booleans(), st.integers(1, 20))
def test_a_plain_state_is_one_more_leaf(cell: tuple[str, int], both: bool, length: int) -> None:
    """A plain state made by the layer's own leaf is a token without an output."""
    layer, x = make(cell, bidirectional=both), tokens(2, length + 2)
    ahead, end = x[:, :1], x[:, -1:]
    parts = zip(layer.layers[0].leaf(ahead), _reverse_leaf(layer, end), strict=True)
    hx = tuple(torch.stack([f, r] if both else [f]).squeeze(2) for f, r in parts)
    got, _ = layer(x[:, 1:-1], hx if cell[0] == "lstm" else hx[0])
    whole, _ = layer(x) if both else layer(x[:, :-1])
    assert_same("out", got, whole[:, 1 : length + 1])


@given(cells, layers, st.booleans(), row_lengths)
def test_a_plain_state_goes_with_each_layer_and_row(
    cell: tuple[str, int], num_layers: int, both: bool, lengths: list[int]
) -> None:
    layer, rows = make(cell, num_layers, bidirectional=both), len(lengths)
    x, parts = tokens(rows, max(lengths)), len(layer.layers[0].state_sizes)
    shape = (num_layers * (1 + both), rows, H)
    hx = tuple(torch.randn(shape, dtype=torch.float64) for _ in range(parts))
    out, _ = layer(x, hx, lengths=lengths)
    for row, n in enumerate(lengths):
        alone, _ = layer(x[row, :n], tuple(t[:, row] for t in hx))
        assert_same("row", out[row, :n], alone)


def _reverse_leaf(layer: PRLSTM, token: Tensor) -> tuple[Tensor, ...]:
    cell = layer.layers[0]
    made: tuple[Tensor, ...] = (cell.reverse if layer.bidirectional else cell).leaf(token)
    return made


def test_zeros_are_not_no_state() -> None:
    layer, x = make(), tokens(2, 4)
    zeros = torch.zeros(1, 2, H, dtype=torch.float64)
    assert not torch.allclose(layer(x)[0], layer(x, (zeros, zeros))[0])


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("cell", CELLS)
def test_gradcheck(cell: tuple[str, int], both: bool) -> None:
    layer, x = make(cell, 2, bidirectional=both), tokens(2, 6).requires_grad_()
    parameters = list(layer.parameters())

    def outputs(x: Tensor, *_: nn.Parameter) -> tuple[Tensor, ...]:
        out, state = layer(x, lengths=[6, 3])
        return (out, *state)

    assert torch.autograd.gradcheck(outputs, (x, *parameters), fast_mode=True)


@given(cells, st.integers(1, 20), st.integers(1, 20))
def test_gradients_flow_through_the_state(cell: tuple[str, int], head: int, tail: int) -> None:
    layer, x = make(cell), tokens(2, head + tail)
    weight = layer.layers[0].leaf.weight

    def gradient(*pieces: Tensor) -> Tensor:
        state, total = None, torch.zeros((), dtype=torch.float64)
        for piece in pieces:
            out, state = layer(piece, state)
            total = total + out.square().sum()
        return torch.autograd.grad(total, weight)[0]

    assert_same("gradient", gradient(x[:, :head], x[:, head:]), gradient(x))
