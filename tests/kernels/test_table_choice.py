"""Which blocks are looked up: those for which least is computed, as merges are counted."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from prlstm.kernels import tables, tree
from prlstm.kernels.choose import Products
from prlstm.kernels.layout import lay_out
from prlstm.kernels.tables import TableLayout, lay_out_tables
from prlstm.kernels.tree import HIGHEST, CellWeights, sweep_lstm_ids
from prlstm.tree import Carry, Words
from prlstm.tree.spelling import LARGEST
from prlstm.tree.tables import MOST_SUMMED


def choose(
    words: Words,
    tokens: int,
    rows: int,
    *,
    seeds: int = 1,
    count: int = 0,
    most: int = HIGHEST,
    entries: int = LARGEST,
) -> TableLayout:
    return lay_out_tables(words, tokens, count, rows, seeds, most, entries)


def entries_of(words: Words, tokens: int, level: int) -> int:
    """How many different blocks of a level there may be, counted one by one."""
    size = 1 << level
    if words.length is None:
        fills = set(range(size + 1))
    else:
        starts = range(0, tokens - size + 1, size)
        fills = {min(size, max(0, words.length - start)) for start in starts}
    return sum(words.letters**fill for fill in fills)


def cost(words: Words, tokens: int, rows: int, extra: int, top: int) -> float:
    """Merges upwards of all rows where blocks up to a level are looked up.

    An eighth of one for a state that is looked up, `extra` for a level of tables.
    """
    made = sum(entries_of(words, tokens, level) + extra for level in range(1, top + 1))
    above = sum(rows * (tokens >> level) for level in range(top + 1, tokens.bit_length()))
    return made + rows * (tokens >> top) / 8 + above


def shared_cost(merges: Sequence[int], extra: int, levels: int) -> float:
    """The same for blocks without a letter above the tables, of so many levels merged once."""
    looked_up = sum(1 + extra + n / 8 for n in merges[:levels])
    return looked_up + sum(merges[levels:])


@given(
    st.integers(1, 4),
    st.sampled_from([1, 7, 60, 128, 1024]),
    st.integers(0, 11),
    st.sampled_from([1, 3, 10]),
    st.integers(0, 6),
    st.sampled_from([3, 5, 300, MOST_SUMMED, LARGEST]),
    st.one_of(st.none(), st.integers(0, 60)),
)
def test_least_is_computed(
    letters: int, rows: int, depth: int, seeds: int, most: int, entries: int, length: int | None
) -> None:
    tokens, extra = 1 << depth, tables.EXTRA // seeds
    for words in (Words(letters, tokens), Words(letters, length)):
        found = choose(words, tokens, rows, seeds=seeds, most=most, entries=entries)
        allowed = [0]
        for level in range(1, min(most, depth) + 1):
            if entries_of(words, tokens, level) > entries:
                break
            allowed.append(level)
        costs = [cost(words, tokens, rows, extra, top) for top in allowed]
        assert costs[found.top] == min(costs)
        sizes = [table.entries for table in found.tables[: found.top + 1]]
        assert sizes == [entries_of(words, tokens, level) for level in range(found.top + 1)]
        if words.length is None or most == 0:
            assert found.shared == ()
            continue
        # where all blocks of a level have letters, those above have too
        levels = range(found.top + 1, depth + 1)
        firsts = [-(-words.length // (1 << level)) for level in levels]
        merges = [
            rows * (blocks - first)
            for level, first in zip(levels, firsts, strict=True)
            if (blocks := tokens >> level) > first
        ]
        costs = [shared_cost(merges, extra, n) for n in range(len(merges) + 1)]
        assert list(found.shared) == firsts[: len(found.shared)]
        assert costs[len(found.shared)] == min(costs)
        assert [t.entries for t in found.tables[found.top + 1 :]] == [1] * len(found.shared)


def test_a_long_batch_of_two_letters() -> None:
    words = Words(2, 2048)
    assert choose(words, 2048, 1024).tables[-1].size == 16
    # in training a table of that many entries is too large to be summed by products
    assert choose(words, 2048, 1024, entries=MOST_SUMMED).tables[-1].entries == 256
    assert choose(words, 2048, 1024, most=2).top == 2
    assert choose(words, 2048, 1024, most=0).top == 0


def test_a_level_must_be_worth_its_launches() -> None:
    # a merge for each row, and an eighth for its lookups, against four entries and the charge
    assert tables.EXTRA == 512
    assert choose(Words(2, 2), 2, 458).top == 0
    assert choose(Words(2, 2), 2, 459).top == 1
    assert choose(Words(2, 2), 2, 45, seeds=10).top == 0
    assert choose(Words(2, 2), 2, 50, seeds=10).top == 1


@pytest.mark.parametrize(("count", "top"), [(0, 3), (16, 3), (8, 3), (12, 2), (6, 1), (7, 0)])
def test_blocks_begin_where_those_of_the_whole_sequence_do(count: int, top: int) -> None:
    assert choose(Words(2, 40), 40, 1024, count=count).top == top


def test_few_letters_behind_which_is_nothing() -> None:
    """A word of 40 letters and 80 empty cells, the latter of which are read."""
    words, tokens, start = Words(2, 40), 120, 40
    assert lay_out(tokens).merges == 229
    one, ten = (choose(words, tokens, 128, seeds=n, entries=MOST_SUMMED) for n in (1, 10))
    assert one.shared == ()
    assert lay_out(tokens, start, 0, one.top, one.shared).merges == 91
    assert one.merges == 279
    assert ten.shared
    assert lay_out(tokens, start, 0, ten.top, ten.shared).merges == 86


@pytest.mark.parametrize(
    ("grad", "every", "want"),
    [
        (True, False, [2, 5, 3, 1024]),
        (False, False, [2, 5, 3, LARGEST]),
        (True, True, [2, 5, 0, 1024]),
        (False, True, [2, 5, 0, LARGEST]),
    ],
)
def test_what_a_sweep_asks_for(
    grad: bool, every: bool, want: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gradients cap the entries; where every node is asked for, leaves alone are looked up."""

    class AskedError(Exception):
        pass

    def sweep_forward(*arguments: object) -> None:
        raise AskedError(arguments[5])

    monkeypatch.setattr(tree, "sweep_forward", sweep_forward)
    cell = CellWeights([torch.zeros(3, 3), torch.zeros(5, 2), torch.zeros(4, 1)], [])
    products = Products(torch.float32, "ieee")
    ids = torch.zeros(1, 8, dtype=torch.int64)
    with torch.set_grad_enabled(grad), pytest.raises(AskedError) as asked:
        sweep_lstm_ids(ids, Words(2, 5), cell, products, Carry(), 0, every=every, most=3)
    assert asked.value.args == (want,)
