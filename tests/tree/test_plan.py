"""The plan: numbers, nodes and the drawing."""

import pytest

from prlstm.tree import Plan


def depth_by_hand(plan: Plan) -> int:
    """Follow every merge of a whole tree."""
    depth: dict[tuple[int, int], int] = {}
    for step in plan.steps:
        for m in step:
            before = depth.get((m.start, m.middle), 0), depth.get((m.middle + 1, m.stop), 0)
            depth[m.start, m.stop] = 1 + max(before)
    read = (depth.get((1, t), 0) for t in range(plan.start + 1, plan.length + 1))
    return max(read)


@pytest.mark.parametrize("length", range(1, 70))
def test_depth_is_the_longest_chain(length: int) -> None:
    for start in range(length):
        plan = Plan(length, start)
        assert plan.depth == depth_by_hand(plan)


@pytest.mark.parametrize(("length", "depth"), [(8, 4), (40, 8), (500, 15)])
def test_depth_of_the_reference(length: int, depth: int) -> None:
    assert Plan(length).depth == depth


def test_last_state_of_500_has_depth_13() -> None:
    assert Plan(500, start=499).depth == 13


def test_steps_name_the_nodes_they_merge() -> None:
    steps = [(s.phase, s.level, [(m.start, m.middle, m.stop) for m in s]) for s in Plan(6).steps]
    assert steps == [
        ("up", 1, [(1, 1, 2), (3, 3, 4), (5, 5, 6)]),
        ("up", 2, [(1, 2, 4)]),
        ("down", 1, [(1, 4, 6)]),
        ("down", 0, [(1, 2, 3), (1, 4, 5)]),
    ]


def test_drawing() -> None:
    assert Plan(6).draw().splitlines() == [
        "         1  2  3  4  5  6",
        "leaf     o  o  o  o  o  o",
        "up 1     ├──●  ├──●  ├──●",
        "up 2     │  ├──┼──●  │  │",
        "down 1   │  │  │  ├──┼──●",
        "down 0   │  ├──●  ├──●  │",
    ]


def test_a_plan_of_any_size_costs_nothing() -> None:
    assert Plan(10**12).merges < 2 * 10**12
    with pytest.raises(ValueError, match="width=80"):
        Plan(10**12).draw(80)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"length": 0}, "length=0"),
        ({"length": 3, "start": 3}, "start=3"),
        ({"length": 3, "count": -1}, "count=-1"),
    ],
)
def test_wrong_use(arguments: dict[str, int], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Plan(**arguments)
