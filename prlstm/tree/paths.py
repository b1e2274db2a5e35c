"""The graph that a plan's merges make, and how far tokens travel in it: integers only.

Lengths of paths are counted in merges. A leaf travels to a state that contains it; two leaves
meet in a state that contains both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from prlstm.tree.plan import Plan


@dataclass(frozen=True)
class Vertex:
    """A state over the leaves `first..last`; `left` and `right` number those it is merged of.

    A leaf has none, and level 0. `level` is the one at which the plan makes the state.
    """

    phase: Literal["leaf", "up", "down"]
    level: int
    first: int
    last: int
    left: int | None = None
    right: int | None = None


@dataclass(frozen=True)
class Spread:
    """Many lengths in three numbers."""

    least: int
    mean: float
    most: int


def spread(lengths: Sequence[int]) -> Spread:
    """The least, the mean and the most of some lengths.

    >>> spread([1, 2, 6])
    Spread(least=1, mean=3.0, most=6)
    """
    return Spread(min(lengths), sum(lengths) / len(lengths), max(lengths))


def vertices(plan: Plan) -> list[Vertex]:
    """Every state of a plan once, each behind those it is merged of: leaves, then step by step."""
    if plan.count:
        raise ValueError(f"count={plan.count}: the graph is that of a sequence from its beginning")
    made = [Vertex("leaf", 0, leaf, leaf) for leaf in range(1, plan.length + 1)]
    place = {(one.first, one.last): number for number, one in enumerate(made)}
    for step in plan.steps:
        for merge in step:
            left = place[merge.start, merge.middle]
            right = place[merge.middle + 1, merge.stop]
            place[merge.start, merge.stop] = len(made)
            made.append(Vertex(step.phase, step.level, merge.start, merge.stop, left, right))
    return made


@dataclass(frozen=True)
class Paths:
    """Paths in the graph of all prefixes of `length` leaves.

    >>> paths = Paths(13)
    >>> paths.reach(1, 13), paths.reach(12, 13), paths.reach(13, 13)
    (5, 4, 1)
    >>> paths.apart(1, 2), paths.apart(8, 9)   # neighbours, the latter across a border
    (2, 5)
    """

    length: int

    @cached_property
    def _vertices(self) -> list[Vertex]:
        return vertices(Plan(self.length))

    @cached_property
    def _place(self) -> dict[tuple[int, int], int]:
        return {(one.first, one.last): number for number, one in enumerate(self._vertices)}

    def reach(self, leaf: int, token: int) -> int:
        """Merges from a leaf to P(token), the state after a token that is not before it."""
        return self._up(leaf, self._place[1, token])

    def apart(self, one: int, other: int) -> int:
        """The fewest merges that lie between two leaves: up from both until they meet.

        They meet in the block over both, if there is one, or in the state after the later one.
        No other state is closer: a larger prefix holds the later leaf in a larger block, and the
        earlier one in as many folds or more.
        """
        first, last = sorted((one, other))
        level = (first - 1 ^ last - 1).bit_length()
        start = last - 1 >> level << level
        meetings = [self._place[1, last]]
        if (block := self._place.get((start + 1, start + (1 << level)))) is not None:
            meetings.append(block)
        return min(self._up(first, above) + self._up(last, above) for above in meetings)

    def to_state(self, token: int) -> Spread:
        """From every leaf of P(token) to it."""
        least, total, most = self._depths[self._place[1, token]]
        return Spread(least, total / token, most)

    def to_states(self) -> Spread:
        """From every leaf to every state that contains it."""
        ends = [self._depths[self._place[1, token]] for token in range(1, self.length + 1)]
        pairs = self.length * (self.length + 1) // 2
        return Spread(
            min(least for least, _, _ in ends),
            sum(total for _, total, _ in ends) / pairs,
            max(most for _, _, most in ends),
        )

    def reach_at(self, distance: int) -> Spread:
        """`reach` from every leaf to the state `distance` tokens later."""
        ends = range(1 + distance, self.length + 1)
        return spread([self.reach(end - distance, end) for end in ends])

    def apart_at(self, distance: int) -> Spread:
        """`apart` of all pairs of leaves at a distance."""
        ends = range(1 + distance, self.length + 1)
        return spread([self.apart(end - distance, end) for end in ends])

    @cached_property
    def _depths(self) -> list[tuple[int, int, int]]:
        """For every vertex the merges above its leaves: the fewest, those of all, the most."""
        found: list[tuple[int, int, int]] = []
        for one in self._vertices:
            if one.left is None or one.right is None:
                found.append((0, 0, 0))
                continue
            left, right = found[one.left], found[one.right]
            total = left[1] + right[1] + one.last - one.first + 1
            found.append((min(left[0], right[0]) + 1, total, max(left[2], right[2]) + 1))
        return found

    def _up(self, leaf: int, above: int) -> int:
        """Merges on the way from a leaf to a vertex, which contains it: walked from above."""
        merges, vertex = 0, self._vertices[above]
        while vertex.left is not None and vertex.right is not None:
            left = self._vertices[vertex.left]
            vertex = left if leaf <= left.last else self._vertices[vertex.right]
            merges += 1
        return merges
