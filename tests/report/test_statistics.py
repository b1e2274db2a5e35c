"""Intervals hold what they promise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prlstm.report.statistics import score_interval, share_interval


def test_an_interval_holds_the_truth_in_95_of_100_cases() -> None:
    """Even where answers to one word are all right or all wrong together."""
    random, truth, answers, held = np.random.default_rng(0), 0.7, 20, 0
    for _ in range(400):
        words = random.random((10, 8, 64)) < truth
        correct = (words.sum(2) * answers).tolist()
        low, high = score_interval(correct, [[64 * answers] * 8] * 10)
        assert low < high
        held += low <= truth <= high
    # with 7 degrees of freedom at each of 10 lengths the spread is known well enough
    assert 0.92 * 400 <= held <= 0.98 * 400


def test_the_interval_of_one_sub_batch_is_that_of_independent_answers() -> None:
    random, truth, held = np.random.default_rng(1), 0.6, 0
    for _ in range(400):
        correct = random.binomial(64, truth, (20, 1)).tolist()
        low, high = score_interval(correct, [[64]] * 20)
        held += low <= truth <= high
    assert 0.92 * 400 <= held <= 0.98 * 400


def test_the_interval_of_one_sub_batch_holds_where_answers_depend_on_each_other() -> None:
    random, truth, answers, held = np.random.default_rng(2), 0.6, 50, 0
    for _ in range(400):
        correct = (random.binomial(64, truth, (20, 1)) * answers).tolist()
        low, high = score_interval(correct, [[64 * answers]] * 20)
        held += low <= truth <= high
    assert 0.92 * 400 <= held <= 0.98 * 400


@pytest.mark.parametrize(("right", "expected"), [(64, (1 - 3 / 5120, 1.0)), (0, (0.0, 3 / 5120))])
def test_all_right_is_not_certain(right: int, expected: tuple[float, float]) -> None:
    found = score_interval([[right] * 8] * 10, [[64] * 8] * 10)
    assert found == pytest.approx(expected)


def test_few_sub_batches_are_a_sample() -> None:
    # shares of 1/4 and 3/4: a variance of 1/8, of their mean half of that
    low, high = score_interval([[16, 48]], [[64, 64]])
    assert (low + high) / 2 == pytest.approx(0.5)
    assert (high - low) / 2 == pytest.approx(1.959964 * 0.25)


def test_lengths_count_alike_however_many_answers_they_have() -> None:
    low, high = score_interval([[64] * 8, [0] * 8], [[64] * 8, [640] * 8])
    assert low < 0.5 < high


@given(st.integers(1, 50).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_of_a_share_holds_it(counts: tuple[int, int]) -> None:
    succeeded, of = counts
    low, high = share_interval(succeeded, of)
    assert 0 <= low <= succeeded / of <= high <= 1
    wider = share_interval(2 * succeeded, 2 * of)
    assert wider[1] - wider[0] < high - low


def test_the_interval_of_a_share_is_wilsons() -> None:
    # a worked example: 3 of 10
    assert share_interval(3, 10) == pytest.approx((0.1078, 0.6032), abs=1e-4)


@pytest.mark.parametrize("counts", [(-1, 3), (4, 3), (0, 0)])
def test_a_share_that_is_none_is_refused(counts: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="expected 0 <= succeeded <= of"):
        share_interval(*counts)
