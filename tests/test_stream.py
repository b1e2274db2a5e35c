"""Numbers that are a function of where they stand."""

import pytest
import torch

from prlstm.stream import choice, keys, uniform
from tests.tasks.chance import assert_likely

KEY = keys([0, 1, 7], "train")
KNOWN = [[9878636, 3809281, 373830, 14458647]]
KNOWN_CHOICES = [2, 12, 12, 21, 6, 14, 27, 12]


def test_numbers_are_a_function_of_seed_split_and_step() -> None:
    drawn = uniform(KEY, 5, 100)
    assert drawn.dtype == torch.float32
    assert drawn.shape == (3, 100)
    assert drawn.equal(uniform(keys([0, 1, 7], "train"), 5, 100))
    # alone and beside others, few and many
    assert drawn[1, :40].equal(uniform(keys([1], "train"), 5, 40)[0])
    # the step may be on the device
    assert drawn.equal(uniform(KEY, torch.tensor(5), 100))
    for other in (uniform(KEY, 6, 100), uniform(keys([0, 1, 7], "test"), 5, 100)):
        assert not (drawn == other).any()


def test_known_values_do_not_move() -> None:
    """A change here would change every run that was ever made."""
    assert (uniform(keys([0], "train"), 0, 4) * 2**24).long().tolist() == KNOWN
    assert [choice(0, "length", step, 40) for step in range(8)] == KNOWN_CHOICES


@pytest.mark.parametrize("step", [0, 1, 999_999, 2**40])
def test_numbers_are_uniform_and_free_of_each_other(step: int) -> None:
    drawn = uniform(KEY, step, 200_000)
    assert 0 <= float(drawn.min()) < 1e-4
    assert 1 - 1e-4 < float(drawn.max()) < 1
    for row in drawn:
        cells = (row * 64).long()
        assert_likely(torch.bincount(cells, minlength=64).tolist(), [1 / 64] * 64)
        # the lowest bits too, and neighbours at some distances
        low = (row * 2**24).long() % 64
        assert_likely(torch.bincount(low, minlength=64).tolist(), [1 / 64] * 64)
        for lag in (1, 2, 41, 128):
            pairs = 8 * (row[:-lag] * 8).long() + (row[lag:] * 8).long()
            assert_likely(torch.bincount(pairs[:: lag + 1], minlength=64).tolist(), [1 / 64] * 64)


def test_steps_and_seeds_are_free_of_each_other() -> None:
    first = torch.stack([uniform(KEY, step, 1)[:, 0] for step in range(4000)])
    for column in first.T:
        assert_likely(torch.bincount((column * 16).long(), minlength=16).tolist(), [1 / 16] * 16)
        pairs = 4 * (column[:-1] * 4).long() + (column[1:] * 4).long()
        assert_likely(torch.bincount(pairs[::2], minlength=16).tolist(), [1 / 16] * 16)
    many = uniform(keys(list(range(4000)), "train"), 0, 1)[:, 0]
    assert_likely(torch.bincount((many * 16).long(), minlength=16).tolist(), [1 / 16] * 16)


def test_choices() -> None:
    drawn = [choice(0, "length", step, 40) for step in range(20_000)]
    assert_likely([drawn.count(value) for value in range(40)], [1 / 40] * 40)
    assert drawn[:50] != [choice(1, "length", step, 40) for step in range(50)]
