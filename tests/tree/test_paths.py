"""Paths in the graph of a plan, against a walk that tries everything."""

from collections import deque
from functools import cache
from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prlstm.tree import Plan
from prlstm.tree.naive import prefix_state
from prlstm.tree.paths import Paths, Spread, spread, vertices

Tree = int | tuple["Tree", "Tree"]


def depths(tree: Tree, above: int = 0) -> dict[int, int]:
    """How deep every leaf of nested pairs lies."""
    if isinstance(tree, int):
        return {tree: above}
    left, right = tree
    return depths(left, above + 1) | depths(right, above + 1)


@cache
def climbed(length: int) -> list[dict[tuple[int, int], int]]:
    """For every leaf, all states above it and the merges to them: breadth first, edge by edge."""
    above: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for step in Plan(length).steps:
        for m in step:
            for part in ((m.start, m.middle), (m.middle + 1, m.stop)):
                above.setdefault(part, []).append((m.start, m.stop))
    found = []
    for leaf in range(1, length + 1):
        seen, queue = {(leaf, leaf): 0}, deque([(leaf, leaf)])
        while queue:
            state = queue.popleft()
            for one in above.get(state, []):
                if one not in seen:
                    seen[one] = seen[state] + 1
                    queue.append(one)
        found.append(seen)
    return found


@pytest.mark.parametrize("length", [*range(1, 35), 63, 64, 65, 100])
def test_from_a_token_to_a_state(length: int) -> None:
    paths = Paths(length)
    for token in range(1, length + 1):
        by_hand = depths(prefix_state(lambda l, r: (l, r), list(range(1, token + 1))))  # noqa: E741
        assert {leaf: paths.reach(leaf, token) for leaf in range(1, token + 1)} == by_hand
        assert paths.to_state(token) == spread(list(by_hand.values()))


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 9, 31, 40])
def test_two_tokens_meet_where_no_other_state_is_closer(length: int) -> None:
    paths, above = Paths(length), climbed(length)
    for one in range(1, length + 1):
        for other in range(1, one):
            both = above[one - 1].keys() & above[other - 1].keys()
            nearest = min(above[one - 1][state] + above[other - 1][state] for state in both)
            assert paths.apart(one, other) == paths.apart(other, one) == nearest


@pytest.mark.parametrize("length", [1, 2, 5, 16, 37])
def test_spreads_are_of_all_pairs(length: int) -> None:
    paths = Paths(length)
    every = [paths.reach(i, j) for j in range(1, length + 1) for i in range(1, j + 1)]
    assert paths.to_states() == spread(every)
    for distance in range(length):
        pairs = [(end - distance, end) for end in range(distance + 1, length + 1)]
        assert paths.reach_at(distance) == spread([paths.reach(i, j) for i, j in pairs])
        if distance:
            assert paths.apart_at(distance) == spread([paths.apart(i, j) for i, j in pairs])


@given(st.integers(1, 600))
def test_no_token_is_deeper_than_the_plan_says(length: int) -> None:
    assert Paths(length).to_state(length).most == Plan(length, start=length - 1).depth
    assert Paths(length).to_states().most == Plan(length).depth


@pytest.mark.parametrize("level", range(1, 9))
def test_neighbours_across_a_border_are_as_far_apart_as_it_is_high(level: int) -> None:
    border = 1 << level
    paths = Paths(2 * border)
    assert paths.reach(border, border + 1) == level + 1
    assert paths.apart(border, border + 1) == level + 2
    assert paths.apart_at(1).most == level + 2
    # while most neighbours are close
    assert paths.apart_at(1).mean < 3.5
    assert paths.reach_at(1).mean < 3.5


@pytest.mark.parametrize("length", [3, 33, 100, 255, 256, 257])
def test_paths_grow_with_the_logarithm_of_the_distance_in_the_mean_alone(length: int) -> None:
    paths = Paths(length)
    for distance in range(1, length):
        found = paths.reach_at(distance)
        # a state over `distance` tokens and one more is no less deep than that
        assert found.least >= distance.bit_length()
        assert found.mean <= 3.5 + 1.5 * log2(distance)
        assert found.most <= Plan(length).depth <= 2 * log2(length)
    # the worst neighbours are those at the highest border: the logarithm of the length
    assert paths.reach_at(1).most == (length - 1).bit_length()
    assert paths.apart_at(1).most == (length - 1).bit_length() + 1


@given(st.integers(2, 300))
def test_every_state_is_there_once_behind_its_parts(length: int) -> None:
    made = vertices(Plan(length))
    assert len(made) == length + Plan(length).merges
    assert len({(one.first, one.last) for one in made}) == len(made)
    for number, one in enumerate(made):
        if one.left is None or one.right is None:
            assert one.phase == "leaf"
            assert one.first == one.last == number + 1
            continue
        left, right = made[one.left], made[one.right]
        assert max(one.left, one.right) < number
        assert (one.first, left.last + 1, one.last) == (left.first, right.first, right.last)


def test_the_last_state_alone() -> None:
    made = vertices(Plan(13, start=12))
    assert len(made) == 13 + 12
    assert (made[-1].first, made[-1].last) == (1, 13)


def test_a_stream_that_goes_on_has_no_graph_of_its_own() -> None:
    with pytest.raises(ValueError, match="count=3"):
        vertices(Plan(5, count=3))


def test_spread() -> None:
    assert spread([4]) == Spread(4, 4.0, 4)
