"""What is trained next."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prlstm.experiments.budget import (
    MILESTONES,
    PORTION,
    Standing,
    best_next,
    next_milestone,
    read_budget,
)


def standing(scored: int = 0, score: float | None = None, **more: float) -> Standing:
    known = {"made": scored, "paper": 1.0, "seconds_per_step": 0.001} | more
    return Standing(scored, score=score, **known)  # type: ignore[arg-type]


def test_what_nobody_has_seen_comes_first() -> None:
    some = [standing(1000, 0.5), standing(), standing()]
    assert best_next(some, 100_000, 60.0) == (1, 1000)
    assert best_next(some, 500, 60.0) == (1, 500)


def test_then_the_greatest_gap_for_its_time() -> None:
    far, near = standing(1000, 0.5), standing(1000, 0.9)
    slow = standing(1000, 0.2, seconds_per_step=0.01)
    assert best_next([near, far, slow], 100_000, 60.0) == (1, 3000)
    # what is as good as the paper's comes last, but it comes
    solved, done = standing(3000, 1.0), standing(100_000, 0.2)
    assert best_next([solved, far], 100_000, 60.0) == (1, 3000)
    assert best_next([done, solved], 100_000, 60.0) == (1, 10_000)
    assert best_next([done], 100_000, 60.0) is None


def test_a_run_that_must_begin_anew_costs_all_its_steps() -> None:
    lost, kept = standing(10_000, 0.5, made=0), standing(10_000, 0.6)
    assert best_next([lost, kept], 100_000, 1000.0) == (1, 30_000)


def test_what_would_take_too_long_is_not_begun() -> None:
    slow = standing(1000, 0.5, kind="lstm", seconds_per_step=0.1)
    quick = standing(1000, 0.5, kind="rnn", seconds_per_step=0.01)
    unseen = standing(kind="lstm")
    assert best_next([slow, unseen], 100_000, 101.0) == (1, 1000)
    assert best_next([slow, unseen], 100_000, 99.0) is None
    # others of its kind tell first, then any
    assert best_next([slow, quick, unseen], 1000, 50.0) is None
    assert best_next([slow, quick, standing(kind="gru")], 1000, 50.0) == (2, 1000)
    # what is trained, and not scored, takes a score alone
    scored = standing(1000, 0.5, score_seconds=60.0)
    assert best_next([scored, standing(made=1000)], 1000, 61.0) == (1, 1000)
    assert best_next([scored, standing(made=1000)], 1000, 59.0) is None


def test_scores_are_a_part_of_the_time() -> None:
    quick, slow = standing(1000, 0.5), standing(1000, 0.4, score_seconds=60.0)
    assert best_next([slow, quick], 100_000, 600.0) == (1, 3000)
    assert best_next([slow], 100_000, 61.9) == (0, 2000)
    assert best_next([slow], 100_000, 60.5) is None


def test_no_time_no_work() -> None:
    assert best_next([standing()], 1000, 0.0) is None
    assert best_next([standing(1000, 0.5)], 100_000, 0.5) is None


cells = st.builds(
    standing,
    scored=st.sampled_from([0, *MILESTONES]),
    score=st.floats(0, 1),
    paper=st.none() | st.floats(0, 1),
    seconds_per_step=st.floats(1e-5, 1.0),
)


@given(st.lists(cells, max_size=6), st.sampled_from(MILESTONES), st.floats(0.1, 1e4))
def test_what_is_chosen_fits(some: list[Standing], steps: int, left: float) -> None:
    chosen = best_next(some, steps, left)
    if chosen is None:
        for one in some:
            assert one.scored >= steps or PORTION * one.seconds_per_step > left / 2
        return
    number, goal = chosen
    one = some[number]
    assert one.scored < goal <= next_milestone(one.scored, steps) <= steps
    if one.scored:
        assert (goal - one.made) * one.seconds_per_step <= left


def test_milestones_are_reached_in_turn() -> None:
    at, seen = 0, []
    while at < 250_000:
        at = next_milestone(at, 250_000)
        seen.append(at)
    assert seen == [1000, 3000, 10_000, 30_000, 100_000, 250_000]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("20m", 1200), ("1h30m", 5400), ("0.5h", 1800), ("2D", 172_800)],
)
def test_times(text: str, seconds: float) -> None:
    assert read_budget(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "20", "m", "-5m", "0s", "5x", "1m2", "nan", "1e3s", "9" * 400 + "d"]
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected a time as in 90s, 20m or 1h30m"):
        read_budget(text)
