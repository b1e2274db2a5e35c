"""Laws of the level-parallel tree: ranges, streams, counts; and what it refuses."""

from collections.abc import Callable
from math import ceil, floor, log2

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from prlstm.tree import (
    Carry,
    Node,
    Plan,
    tree_extend,
    tree_reduce,
    tree_reduce_rows,
    tree_scan,
    tree_scan_naive,
)
from prlstm.tree.naive import prefix_state
from tests.tree.symbols import Symbols

HOSTILE = [1, 2, 3, 4, 7, 8, 9, 31, 32, 33, 40, 41, 127, 128, 129, 500, 1023, 1024, 1025]


def ids(n: int) -> Node:
    return (torch.arange(1, n + 1),)


@pytest.mark.parametrize("n", HOSTILE)
def test_merges_are_counted_not_assumed(n: int) -> None:
    symbols = Symbols()
    tree_scan(symbols.merge, ids(n), dim=0)
    assert symbols.merges < 2 * n
    assert symbols.calls <= 2 * ceil(log2(n)) + 1
    symbols.reset()
    tree_reduce(symbols.merge, ids(n), dim=0)
    assert symbols.merges == n - 1
    assert symbols.calls <= 2 * ceil(log2(n)) + 1


@pytest.mark.parametrize(("n", "merges"), [(8, 11), (40, 72), (500, 985), (512, 1013)])
def test_number_of_merges_of_the_reference(n: int, merges: int) -> None:
    assert Plan(n).merges == merges


@given(st.data())
def test_read_range_is_the_same_positions_of_all(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 140))
    start = data.draw(st.integers(0, n - 1))
    stop = data.draw(st.integers(start + 1, n))
    symbols = Symbols()
    whole = tree_scan(symbols.merge, ids(n), dim=0)[0]
    symbols.reset()
    some = tree_scan(symbols.merge, ids(n), dim=0, start=start, stop=stop)[0]
    assert some.tolist() == whole[start:stop].tolist()
    assert symbols.merges == Plan(stop, start).merges


@given(st.integers(1, 64), st.data())
def test_read_range_makes_exactly_the_merges_it_needs(n: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, n - 1))
    needed: set[tuple[object, object]] = set()

    def pair(left: object, right: object) -> object:
        needed.add((left, right))
        return (left, right)

    for t in range(start + 1, n + 1):
        prefix_state(pair, list(range(1, t + 1)))
    assert Plan(n, start).merges == len(needed)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_any_cuts_give_the_whole(cuts: list[int]) -> None:
    n = sum(cuts)
    symbols = Symbols()
    want = tree_scan(symbols.merge, ids(n), dim=0)[0].tolist()
    symbols.reset()
    got, carry = [], Carry()
    for piece in torch.arange(1, n + 1).split(cuts):
        prefixes, carry = tree_extend(symbols.merge, (piece,), carry, dim=0)
        got += prefixes[0].tolist()
    assert got == want
    # nothing is computed twice
    assert symbols.merges == Plan(n).merges


@given(st.lists(st.integers(1, 140), min_size=1, max_size=12), st.integers(0, 9))
def test_rows_that_end_early_are_reduced_to_their_own_ends(lengths: list[int], more: int) -> None:
    symbols, longest = Symbols(), max(lengths) + more
    leaves = torch.arange(1, longest + 1).expand(len(lengths), longest)
    (got,) = tree_reduce_rows(symbols.merge, (leaves,), torch.tensor(lengths))
    assert symbols.merges < len(lengths) * (longest + longest.bit_length())
    for row, n in enumerate(lengths):
        (want,) = tree_reduce(symbols.merge, ids(n), dim=0)
        assert int(got[row]) == int(want)


@pytest.mark.parametrize("n", HOSTILE)
def test_token_by_token_keeps_few_states_and_merges_few(n: int) -> None:
    symbols = Symbols()
    want = tree_scan(symbols.merge, ids(n), dim=0)[0].tolist()
    symbols.reset()
    carry = Carry()
    for t in range(1, n + 1):
        (prefix,), carry = tree_extend(symbols.merge, (torch.tensor([t]),), carry, dim=0)
        assert prefix.tolist() == [want[t - 1]]
        kept = [node for node in (*carry.blocks, *carry.folds) if node is not None]
        assert len(kept) <= 2 * (floor(log2(t)) + 1)
    assert symbols.merges < 2 * n


def test_a_carry_is_a_value() -> None:
    symbols = Symbols()
    _, carry = tree_extend(symbols.merge, ids(13), dim=0)
    once = tree_extend(symbols.merge, (torch.arange(14, 20),), carry, dim=0)[0][0]
    twice = tree_extend(symbols.merge, (torch.arange(14, 20),), carry, dim=0)[0][0]
    assert once.tolist() == twice.tolist()


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2])
def test_any_dimension(dim: int) -> None:
    def merge(left: Node, right: Node) -> Node:
        return (left[0] - 2 * right[0] * right[1], left[1] + right[1])

    a, b = (torch.randn(13, 13, 13, dtype=torch.float64) for _ in range(2))
    want = tree_scan_naive(
        merge, [(x, y) for x, y in zip(a.unbind(dim), b.unbind(dim), strict=True)]
    )
    got = tree_scan(merge, (a, b), dim)
    for index in range(2):
        torch.testing.assert_close(got[index], torch.stack([w[index] for w in want], dim))
    last = tree_reduce(merge, (a, b), dim)
    torch.testing.assert_close(last[0], want[-1][0])


def test_gradients_flow_through_every_node() -> None:
    def merge(left: Node, right: Node) -> Node:
        return (torch.sin(left[0]) + left[0] * right[0].square(),)

    leaves = torch.randn(2, 11, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: tree_scan(merge, (x,))[0], leaves)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda m: tree_scan(m, torch.zeros(3)), TypeError, "leaves=Tensor"),
        (lambda m: tree_scan(m, ()), TypeError, "leaves"),
        (lambda m: tree_scan(m, (torch.zeros(2, 0),)), ValueError, "length >= 1"),
        (lambda m: tree_scan(m, (torch.zeros(2, 3), torch.zeros(2, 4))), ValueError, "one length"),
        (lambda m: tree_scan(m, (torch.zeros(2),), dim=1), ValueError, "dim=1"),
        (lambda m: tree_scan(m, (torch.zeros(2, 3), torch.zeros(3)), dim=-1), ValueError, "dim=-1"),
        (
            lambda m: tree_scan(m, (torch.zeros(2, 3),), start=2, stop=2),
            ValueError,
            "start=2, stop=2",
        ),
        (lambda m: tree_scan(m, (torch.zeros(2, 3),), stop=4), ValueError, "stop=4"),
        (
            lambda m: tree_scan(lambda a, b: a[0], (torch.zeros(2, 3),)),
            ValueError,
            "merge returned",
        ),
        (
            lambda m: tree_scan(lambda a, b: (a[0][:, :1],), (torch.zeros(2, 5),)),
            ValueError,
            r"merge returned \(Tensor\(2, 1\)\)",
        ),
        (lambda m: tree_scan(lambda a, b: (), (torch.zeros(2, 3),)), ValueError, r"returned \(\)"),
        (lambda m: tree_scan(lambda a, b: (None,), (torch.zeros(2, 3),)), ValueError, "NoneType"),
        (lambda m: tree_scan(m, (torch.zeros(2, 3),), start=0.5), ValueError, "start=0.5"),
        (lambda m: tree_scan(m, (torch.zeros(2, 3),), dim=None), ValueError, "dim=None"),
    ],
)
def test_wrong_use(call: Callable[[object], object], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call(lambda left, right: left)
