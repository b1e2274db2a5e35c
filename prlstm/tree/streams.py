"""One more leaf for each of many streams, every one of them at a count of its own.

A stream of n leaves keeps a block and a prefix for every binary digit 1 of n, see
`prlstm.tree.carry`. One more leaf is merged with the blocks of the digits 1 that n ends with,
lowest first: it carries like a 1 that is added. Its block then waits at the lowest digit 1 of
n + 1, and the prefix at the next digit 1 is folded with it. Over many leaves those are under one
merge and one, for each of them.

Rows merge level by level, in the order of how far they carry: so those that go on are always the
first ones, and nothing is moved.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from prlstm.tree.node import MergeFunction, Node, size, take
from prlstm.tree.rows import Pending, levels_in_use
from prlstm.tree.scan import checked_merge

Integers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Booleans = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


class Run(NamedTuple):
    """Neighbours `start .. stop` that have to do with one level."""

    level: int
    start: int
    stop: int


@dataclass(frozen=True)
class Increment:
    """The merges that one more leaf needs in some rows: integers only, no tensors."""

    # the rows that get a leaf: those that merge at most levels first
    order: Integers
    # of each, in that order: the level where its new block waits
    stops: Integers
    # and the level of the prefix before that block, -1 if there is none
    above: Integers

    @staticmethod
    def of(counts: Integers, active: Booleans | None = None) -> "Increment":
        """One leaf after `counts` earlier ones, in all rows or the `active` ones.

        >>> plan = Increment.of(np.array([4, 3, 0, 5]))
        >>> plan.order.tolist(), plan.merging, plan.merges
        ([1, 3, 0, 2], (2, 1), 5)
        """
        rows = np.arange(len(counts)) if active is None else np.flatnonzero(active)
        after = counts[rows] + 1
        stops = _lowest_digit(after)
        # numbers of one byte are sorted several times as fast
        order = np.argsort(-stops.astype(np.int8), kind="stable")
        above = _lowest_digit(after & (after - 1))
        return Increment(rows[order], stops[order], above[order])

    @cached_property
    def merging(self) -> tuple[int, ...]:
        """For every level how many rows merge there, the first ones."""
        stopping = np.bincount(self.stops)
        return tuple(np.cumsum(stopping[::-1])[::-1][1:].tolist())

    @property
    def merges(self) -> int:
        """How many merges that is."""
        return sum(self.merging) + len(self.folded)

    @property
    def waiting(self) -> list[Run]:
        """Which rows' blocks wait at which level."""
        return _runs(self.stops)

    @cached_property
    def folded(self) -> Integers:
        """Which places of `order` have a prefix to be folded with, those of one level together."""
        by_level = np.argsort(self.above.astype(np.int8), kind="stable")
        return by_level[np.count_nonzero(self.above < 0) :]

    @property
    def folds(self) -> list[Run]:
        """Which of `folded` have it at which level."""
        return _runs(self.above[self.folded])

    def on(self, device: torch.device) -> "Rows":
        """The places that tensors are indexed by, in one copy."""
        every = np.concatenate([self.order, self.folded, self.order[self.folded]])
        sizes = [len(self.order), len(self.folded), len(self.folded)]
        return Rows(*torch.split(torch.from_numpy(every).to(device), sizes))


class Rows(NamedTuple):
    """`order`, `folded` and the rows of `folded` of an `Increment`, on a device."""

    order: Tensor
    folded: Tensor
    folded_rows: Tensor


def _lowest_digit(n: Integers) -> Integers:
    """The place of the lowest binary digit 1, or -1: a power of two is exact as a float."""
    exponents: Integers = np.frexp(n & -n)[1] - 1
    return exponents


def _runs(levels: Integers) -> list[Run]:
    """Neighbours of one level."""
    edges = [0, *(np.flatnonzero(np.diff(levels)) + 1).tolist(), len(levels)]
    return [Run(int(levels[start]), start, stop) for start, stop in pairwise(edges) if start < stop]


def add_leaves(
    merge: MergeFunction,
    leaves: Node,
    plan: Increment,
    rows: Rows,
    blocks: Sequence[Node | None],
    folds: Sequence[Node | None],
) -> tuple[Node, Node]:
    """The new block and the new prefix of every row that gets a leaf.

    Rows are on dimension 0: of `leaves` and the results those of `plan.order`, of what waits at
    each level, `blocks` and `folds`, all.
    """
    node, stopped = leaves, []
    for level, count in enumerate(plan.merging):
        stopped.append(take(node, 0, count, size(node, 0)))
        left = _at(blocks[level], rows.order[:count])
        node = checked_merge(merge, left, take(node, 0, 0, count))
    block = _joined([node, *reversed(stopped)])
    if not len(plan.folded):
        return block, block
    above = [_at(folds[level], rows.folded_rows[i:j]) for level, i, j in plan.folds]
    folded = checked_merge(merge, _joined(above), _at(block, rows.folded))
    return block, replaced(block, rows.folded, folded)


def replaced(node: Node, rows: Tensor, states: Node) -> Node:
    """The states of some rows in the place of those that are there."""
    kinds = [torch.promote_types(a.dtype, b.dtype) for a, b in zip(node, states, strict=True)]
    return tuple(
        a.to(kind).index_copy(0, rows, b.to(kind))
        for a, b, kind in zip(node, states, kinds, strict=True)
    )


def pending_after(
    earlier: Pending, plan: Increment, rows: Rows, block: Node, prefix: Node, counts: Sequence[int]
) -> Pending:
    """What all rows keep, each at its own of `counts`; nothing that is given is changed."""

    def levels(nodes: Sequence[Node | None], states: Node) -> tuple[Node | None, ...]:
        used = levels_in_use(counts)
        # what no row uses is dropped
        after = [nodes[k] if k < len(nodes) and use else None for k, use in enumerate(used)]
        for level, start, stop in plan.waiting:
            node = after[level]
            if node is None:
                # rows without a block at this level never look at it
                node = tuple(t.new_zeros(len(counts), *t.shape[1:]) for t in states)
            there = take(states, 0, start, stop)
            after[level] = replaced(node, rows.order[start:stop], there)
        return tuple(after)

    return Pending(levels(earlier.blocks, block), levels(earlier.folds, prefix))


def put_states(levels: Sequence[Node], runs: Sequence[Run], rows: Tensor, states: Node) -> None:
    """Write states of `rows` to the levels that `runs` tells, in place."""
    for level, start, stop in runs:
        for t, new in zip(levels[level], take(states, 0, start, stop), strict=True):
            t.index_copy_(0, rows[start:stop], new.to(t.dtype))


def last_prefixes(counts: Integers, folds: Sequence[Node]) -> Node:
    """The prefix P(counts[row]) of every row, zeros without a leaf.

    It waits at the lowest digit 1 of the row's count.
    """
    found = tuple(torch.zeros_like(t) for t in folds[0])
    levels = _lowest_digit(counts)
    for level in np.unique(levels[levels >= 0]).tolist():
        rows = torch.from_numpy(np.flatnonzero(levels == level)).to(found[0].device)
        found = replaced(found, rows, _at(folds[level], rows))
    return found


def _at(node: Node | None, rows: Tensor) -> Node:
    assert node is not None, "no block waits where one is merged"
    return tuple(t.index_select(0, rows) for t in node)


def _joined(nodes: Sequence[Node]) -> Node:
    if len(nodes) == 1:
        return nodes[0]
    return tuple(torch.cat(parts) for parts in zip(*nodes, strict=True))
