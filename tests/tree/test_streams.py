"""One more leaf for rows at counts of their own: the same trees, for under 2 merges a leaf."""

import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from prlstm.tree import Carry, Node, bracketing, sweep, tree_extend
from prlstm.tree.rows import Pending, levels_in_use
from prlstm.tree.streams import Increment, add_leaves, pending_after
from tests.tree.symbols import Symbols

Level = Node | None
CPU = torch.device("cpu")


class Streams:
    """Rows of symbols that grow by leaves: each row's are 1, 2, 3, .. but for its own number."""

    def __init__(self, rows: int) -> None:
        self.symbols = Symbols()
        self.counts, self.pending = np.zeros(rows, np.int64), Pending((), ())
        self.last = [0] * rows

    def leaf(self, row: int, n: int) -> int:
        return 1000 * row + n

    def step(self, active: list[bool] | None = None) -> Increment:
        plan = Increment.of(self.counts, None if active is None else np.array(active))
        rows = plan.on(CPU)
        self.counts[plan.order] += 1
        leaves = [self.leaf(row, int(self.counts[row])) for row in plan.order]
        block, prefix = add_leaves(
            self.symbols.merge, (torch.tensor(leaves, dtype=torch.long),), plan, rows, *self.pending
        )
        after = self.counts.tolist()
        self.pending = pending_after(self.pending, plan, rows, block, prefix, after)
        for row, symbol in zip(plan.order, prefix[0].tolist(), strict=True):
            self.last[row] = symbol
        return plan

    def whole(self, row: int) -> tuple[int, Carry]:
        """The last prefix and the carry of a row, read at once."""
        count = int(self.counts[row])
        leaves = torch.tensor([self.leaf(row, n) for n in range(1, count + 1)])
        done = sweep(self.symbols.merge, (leaves,), 0)
        return int(done.read[0][-1]), done.carry()


@given(st.integers(1, 4), st.integers(1, 40), st.randoms(use_true_random=False))
def test_masked_steps_are_the_whole_of_every_row(
    rows: int, steps: int, chance: random.Random
) -> None:
    """The prefixes, and all that waits; nothing is changed that was given."""
    streams = Streams(rows)
    for _ in range(steps):
        before = streams.pending
        kept = [None if node is None else node[0].clone() for half in before for node in half]
        streams.step([chance.random() < 0.6 for _ in range(rows)])
        for node, copy in zip((n for half in before for n in half), kept, strict=True):
            assert node is None or copy is None or torch.equal(node[0], copy)
    used = levels_in_use(streams.counts.tolist())
    assert [node is not None for node in streams.pending.blocks] == used
    for row in range(rows):
        if not streams.counts[row]:
            continue
        last, carry = streams.whole(row)
        assert streams.last[row] == last
        for mine, wanted in zip(streams.pending, (carry.blocks, carry.folds), strict=True):
            for node, want in zip(mine, wanted, strict=False):
                assert want is None or (node is not None and node[0][row] == want[0][0])


def test_the_tree_is_the_definition() -> None:
    def merge(left: Node, right: Node) -> Node:
        made = np.char.add(np.char.add(np.char.add("(", names(left)), " "), names(right))
        return (torch.tensor([book(f"{text})") for text in made]),)

    known: list[str] = []

    def book(text: str) -> int:
        known.append(text)
        return len(known) - 1

    def names(node: Node) -> list[str]:
        return [known[i] for i in node[0].tolist()]

    counts, pending = np.array([0]), Pending((), ())
    for n in range(1, 24):
        plan = Increment.of(counts)
        rows, counts = plan.on(CPU), counts + 1
        block, prefix = add_leaves(merge, (torch.tensor([book(str(n))]),), plan, rows, *pending)
        pending = pending_after(pending, plan, rows, block, prefix, counts.tolist())
        assert names(prefix) == [bracketing(n)]


def test_under_two_merges_a_leaf_wherever_rows_stand() -> None:
    """All rows at different counts: over 64 steps of 50 rows, as one row alone, and as planned."""
    streams = Streams(50)
    for row in range(50):
        for _ in range(row):
            streams.step([r == row for r in range(50)])
    streams.symbols.reset()
    planned = sum(streams.step().merges for _ in range(64))
    assert streams.symbols.merges == planned < 2 * 64 * 50
    # a call for each level and one for the folds
    assert streams.symbols.calls <= 64 * 9
    alone = Streams(1)
    for n in range(1, 600):
        alone.step()
        assert alone.symbols.merges < 2 * n


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=20))
def test_a_plan_of_any_counts(counts: list[int]) -> None:
    plan = Increment.of(np.array(counts))
    for row, stop, above in zip(plan.order, plan.stops, plan.above, strict=True):
        n = counts[row] + 1
        low = n & -n
        assert stop == low.bit_length() - 1
        assert above == (n - low & low - n).bit_length() - 1
    for level, count in enumerate(plan.merging):
        assert count == sum(plan.stops > level) > 0
        assert all(plan.stops[:count] > level)
    assert sorted(plan.order) == list(range(len(counts)))
    waiting = [(run.level, row) for run in plan.waiting for row in range(run.start, run.stop)]
    assert waiting == [(stop, row) for row, stop in enumerate(plan.stops)]
    folds = [plan.folded[place] for run in plan.folds for place in range(run.start, run.stop)]
    assert sorted(folds) == [row for row, above in enumerate(plan.above) if above >= 0]
    assert all(
        (plan.above[plan.folded[run.start : run.stop]] == run.level).all() for run in plan.folds
    )


def test_no_row_at_all() -> None:
    plan = Increment.of(np.array([3, 4]), np.array([False, False]))
    assert (plan.merges, plan.merging, plan.waiting, plan.folds) == (0, (), [], [])
    leaves = (torch.zeros(0, dtype=torch.long),)
    symbols = Symbols()
    made = add_leaves(symbols.merge, leaves, plan, plan.on(CPU), (), ())
    assert symbols.calls == 0
    assert [node[0].numel() for node in made] == [0, 0]


def test_a_merge_that_gives_something_else_is_named() -> None:
    _, carry = tree_extend(lambda left, _: left, (torch.zeros(1),), dim=0)
    plan = Increment.of(np.array([1]))
    leaves, rows = (torch.zeros(1),), plan.on(CPU)
    with pytest.raises(ValueError, match="merge returned"):
        add_leaves(lambda left, _: left[0], leaves, plan, rows, carry.blocks, carry.folds)
