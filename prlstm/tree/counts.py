"""What a sequence costs in its tree: work, depth and paths, counted from the plan and the graph."""

from collections.abc import Iterable
from dataclasses import dataclass

from prlstm.tree.paths import Paths, Spread
from prlstm.tree.plan import Plan


@dataclass(frozen=True)
class Counts:
    """The merges of a sequence: for the states after every token, and for the last one alone."""

    length: int
    merges: int
    merges_last: int
    depth: int
    depth_last: int
    # from every token to the last state, and to all states that contain it
    to_last: Spread
    to_all: Spread


@dataclass(frozen=True)
class Distance:
    """Paths between tokens at a distance: to the state after the later one, and to each other."""

    distance: int
    reach: Spread
    apart: Spread


def counts(length: int) -> Counts:
    """What the plan and its graph say of a length.

    >>> counts(1000).merges, counts(1000).depth, counts(1000).to_last.most
    (1984, 17, 14)
    """
    whole, last, paths = Plan(length), Plan(length, start=length - 1), Paths(length)
    work = (whole.merges, last.merges, whole.depth, last.depth)
    return Counts(length, *work, paths.to_state(length), paths.to_states())


def over_distance(length: int, distances: Iterable[int]) -> list[Distance]:
    """Paths of all pairs of a sequence's tokens at some distances."""
    paths = Paths(length)
    return [Distance(one, paths.reach_at(one), paths.apart_at(one)) for one in distances]
