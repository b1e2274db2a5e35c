"""Blocks that are looked up: the same trees, for fewer merges."""

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.func import vmap

from prlstm.cells import LSTMCell
from prlstm.tree import Carry, Words, sweep, sweep_ids, tree_reduce, tree_reduce_ids
from prlstm.tree.spelling import Table, tables_for
from tests.compare import assert_rel
from tests.tree.symbols import Symbols

RANDOM = st.randoms(use_true_random=False)


def rows_of_words(chance: random.Random, lengths: list[int], width: int, letters: int) -> Tensor:
    """Letters, then the one id that is none."""
    rows = [
        [chance.randrange(letters) if t < length else letters for t in range(width)]
        for length in lengths
    ]
    return torch.tensor(rows)


@given(st.integers(0, 3), st.integers(1, 3), st.integers(0, 12), st.integers(0, 12))
def test_every_block_has_a_number_and_is_spelled_by_it(
    level: int, letters: int, length: int, tail: int
) -> None:
    """Fills that occur, and no others, have numbers; these go from 0 to the last without a gap."""
    tokens = length + tail
    for words in (Words(letters, length), Words(letters, None)):
        fills = words.fills(level, tokens)
        if words.length is not None:
            size = 1 << level
            seen = {min(size, max(0, length - b * size)) for b in range(tokens >> level)}
            assert set(fills) == seen
        if not fills:
            continue
        table = Table(level, letters, fills)
        spelled = table.spelled(torch.device("cpu"))
        assert spelled.shape == (table.entries, 1 << level)
        assert table.codes(spelled)[:, 0].tolist() == list(range(table.entries))


@given(
    st.integers(1, 3), st.integers(0, 70), st.integers(0, 40), st.integers(0, 3), RANDOM, st.data()
)
def test_a_sweep_over_ids_is_the_sweep_over_their_states(
    letters: int, length: int, tail: int, rows: int, chance: random.Random, data: st.DataObject
) -> None:
    """For all prefixes, some or the last; with a tail or without; with many tables or few."""
    width = max(1, length + tail)
    start = data.draw(st.integers(0, width - 1))
    ids = rows_of_words(chance, [length] * (rows + 1), width, letters)
    # rows count twice: so that tables are worth it
    ids = ids.repeat(data.draw(st.sampled_from([1, 20])), 1)
    symbols = Symbols()
    alphabet = (torch.arange(1, letters + 2),)
    got = sweep_ids(symbols.merge, alphabet, ids, Words(letters, min(length, width)), start=start)
    want = sweep(symbols.merge, (ids + 1,), 1, start=start)
    assert torch.equal(got.read[0], want.read[0])
    assert len(got.blocks) == len(want.blocks)
    for level, (block, other) in enumerate(zip(got.blocks, want.blocks, strict=True)):
        assert torch.equal(block[0], other[0]), level
    ours, theirs = got.carry(), want.carry()
    assert str(ours) == str(theirs)


@given(st.integers(1, 3), st.lists(st.integers(1, 40), min_size=1, max_size=4), RANDOM)
def test_a_stream_of_ids_is_the_whole(
    letters: int, pieces: list[int], chance: random.Random
) -> None:
    """Blocks are looked up only where they stand as they do in the whole."""
    symbols, alphabet = Symbols(), (torch.arange(1, letters + 1),)
    ids = rows_of_words(chance, [sum(pieces)] * 30, sum(pieces), letters)
    carry, found = Carry(), []
    for piece in ids.split(pieces, 1):
        done = sweep_ids(symbols.merge, alphabet, piece, Words(letters, piece.shape[1]), carry)
        found.append(done.read[0])
        carry = done.carry()
    want = sweep(symbols.merge, (ids + 1,), 1)
    assert torch.equal(torch.cat(found, 1), want.read[0])
    assert str(carry) == str(want.carry())


@given(st.lists(st.integers(1, 140), min_size=1, max_size=12), st.integers(1, 5), RANDOM)
def test_rows_of_their_own_lengths(lengths: list[int], letters: int, chance: random.Random) -> None:
    longest, symbols = max(lengths), Symbols()
    alphabet = (torch.arange(1, letters + 2),)
    ids = rows_of_words(chance, lengths, longest + 1, letters)
    ends = torch.tensor(lengths) + 1
    (got,) = tree_reduce_ids(symbols.merge, alphabet, ids, Words(letters, None), ends)
    for row, n in enumerate(ends.tolist()):
        (want,) = tree_reduce(symbols.merge, (ids[row, :n] + 1,), dim=0)
        assert int(got[row]) == int(want)


def test_looking_up_saves_merges() -> None:
    symbols, ids = Symbols(), torch.randint(2, (128, 41), generator=torch.Generator())
    ids[:, -1] = 2
    sweep_ids(symbols.merge, (torch.arange(3),), ids, Words(2, 40), start=40)
    # tables of 4, 16 and 256 blocks; of 16 and 32 tokens for each row; P(40) and P(41)
    assert symbols.merges == 4 + 16 + 256 + 128 * (2 + 1) + 128 * 2


@given(st.integers(1, 70), st.integers(1, 9), st.integers(0, 90), st.booleans(), RANDOM, st.data())
def test_blocks_that_repeat_are_computed_once(
    length: int, period: int, tail: int, mixed: bool, chance: random.Random, data: st.DataObject
) -> None:
    """Of a vocabulary too large for tables; the blocks of a stream, of a range and at ends."""
    letters, rows = 1000, 80
    texts = [chance.choices(range(letters), k=period) for _ in range(3)]
    whole = [(texts[row % 3] * length)[: length + tail] for row in range(rows)]
    ids, symbols = torch.tensor(whole), Symbols()
    alphabet, words = (torch.arange(1, letters + 1),), Words(letters, ids.shape[1])
    want = sweep(symbols.merge, (ids + 1,), 1)
    if mixed:
        ends = torch.randint(1, ids.shape[1] + 1, (rows,))
        (got,) = tree_reduce_ids(symbols.merge, alphabet, ids, words, ends)
        assert torch.equal(got, want.read[0][torch.arange(rows), ends - 1])
        return
    cut = data.draw(st.integers(1, ids.shape[1]))
    done = sweep_ids(symbols.merge, alphabet, ids[:, :cut], Words(letters, cut))
    found = [done.read[0]]
    if cut < ids.shape[1]:
        rest = ids[:, cut:]
        known = Words(letters, rest.shape[1])
        done = sweep_ids(symbols.merge, alphabet, rest, known, done.carry())
        found.append(done.read[0])
    assert torch.equal(torch.cat(found, 1), want.read[0])
    assert str(done.carry()) == str(want.carry())


def test_repeating_blocks_save_merges() -> None:
    symbols, text = Symbols(), torch.randint(1000, (1, 32))
    sweep_ids(
        symbols.merge, (torch.arange(1000),), text.repeat(600, 4), Words(1000, 128), start=127
    )
    # 16 + 8 + 4 + 2 + 1 blocks of 32 tokens, once; then the whole is one block twice, and once
    assert symbols.merges <= 31 + 2


def test_gradients_of_repeating_blocks() -> None:
    cell, text = LSTMCell(50, 5).double(), torch.randint(50, (1, 12))
    ids = text.repeat(90, 3)
    eye = torch.eye(50, dtype=torch.float64)
    weight = torch.randn(90, 36, 5, dtype=torch.float64)
    symbols = Symbols()
    sweep_ids(symbols.merge, (torch.arange(50),), ids, Words(50, 36))
    assert symbols.merges < 90 * 36
    reads = (
        sweep_ids(cell.merge, cell.leaf(eye), ids, Words(50, 36)).read[0],
        sweep(cell.merge, cell.leaf(eye[ids]), 1).read[0],
    )
    parameters = list(cell.parameters())
    found = [[h, *torch.autograd.grad((h * weight).sum(), parameters)] for h in reads]
    for got, want in zip(*found, strict=True):
        assert_rel("value", got, want, 1e-12)


def test_tables_have_no_more_entries_than_they_may() -> None:
    entries = [Table(level, 2, (1 << level,)).entries for level in range(5)]
    for most, expected in ((1 << 62, 5), (entries[3], 4), (entries[3] - 1, 3)):
        assert len(tables_for(Words(2, 64), 64, 10**6, most=4, extra=0, entries=most)) == expected


def test_a_tail_is_computed_once() -> None:
    """Empty cells are one block a level, and a block across the border is one of few."""
    words = Words(2, 5)
    assert words.fills(2, 40) == (0, 1, 4)
    tables = tables_for(words, 40, 1000, most=4, extra=0)
    assert [table.entries for table in tables] == [3, 4 + 2 + 1, 16 + 2 + 1, 32 + 1, 32 + 1]


@pytest.mark.parametrize("stacked", [False, True])
def test_gradients_flow_into_the_table(stacked: bool) -> None:
    """As through the leaves of all tokens; of one cell, and of many at once."""
    cell = LSTMCell(3, 5).double()
    ids = torch.randint(2, (2, 40, 23), generator=torch.Generator().manual_seed(0))
    ids[:, :, 19:] = 2
    eye = torch.eye(3, dtype=torch.float64)

    def looked_up(ids: Tensor) -> Tensor:
        return sweep_ids(cell.merge, cell.leaf(eye), ids, Words(2, 19), start=17).read[0]

    def plain(ids: Tensor) -> Tensor:
        return sweep(cell.merge, cell.leaf(eye[ids]), 1, start=17).read[0]

    found = []
    for function in (looked_up, plain):
        out = vmap(function)(ids) if stacked else torch.stack([function(one) for one in ids])
        loss = (out * torch.linspace(-1, 1, out.numel()).view_as(out)).sum()
        found.append([out, *torch.autograd.grad(loss, list(cell.parameters()))])
    for got, want in zip(*found, strict=True):
        assert_rel("value", got, want, 1e-12)
