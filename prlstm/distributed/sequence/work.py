"""What a rank has to do for its part of a sequence: counted, not measured."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from prlstm.distributed.sequence.parts import Piece, all_pieces
from prlstm.distributed.sequence.roots import Root, extended
from prlstm.tree import Carry, Node, Plan


@dataclass(frozen=True)
class Work:
    """Of one row of a batch, in one layer, forward: merges, batched calls of the merge, exchanges.

    `states` are those that each rank sends, in `exchanges` collectives.
    """

    tokens: int
    merges: int
    calls: int
    states: int
    exchanges: int


def work(lengths: Sequence[int], rank: int, *, last: bool = False) -> Work:
    """What one rank does of a sequence in parts of these lengths; with `last` for its end alone.

    >>> work([256, 256], 1).merges, work([256, 256], 1, last=True).merges
    (511, 256)
    """
    places = all_pieces(lengths)
    mine = places[rank]
    counter = _Counter()
    before = [(piece.level, counter.state()) for part in places[:rank] for piece in part]
    carry = extended(counter.merge, Carry(), before)
    for piece in mine:
        counter.add(Plan(len(piece), start=len(piece) - 1))
        if not last:
            # its own blocks are at hand
            counter.add(Plan(len(piece), count=piece.start), above=piece.level)
    if last:
        extended(counter.merge, carry, [root for piece in mine for root in _roots(piece, counter)])
    slots = max(map(len, places))
    return Work(lengths[rank], counter.merges, counter.calls, slots + last, 1 + last)


class _Counter:
    """A merge of nothing, that counts."""

    def __init__(self) -> None:
        self.merges = self.calls = 0

    def state(self) -> Node:
        """One state; each is another, as a carry tells by identity what it still holds."""
        return (torch.empty(1, 1),)

    def merge(self, left: Node, right: Node) -> Node:
        self.calls += 1
        self.merges += left[0].shape[1]
        return left

    def add(self, plan: Plan, above: int = 0) -> None:
        """The merges of a plan: all that go down, and up those above a level."""
        for step in plan.steps:
            if step.phase == "down" or step.level > above:
                self.calls += 1
                self.merges += len(step)


def _roots(piece: Piece, counter: _Counter) -> list[Root]:
    size = len(piece)
    return [
        (level, counter.state())
        for level in reversed(range(size.bit_length()))
        if size >> level & 1
    ]
