"""The samplers draw what the benchmark draws."""

import math
from collections import Counter
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from prlstm import tasks
from tests.tasks.chance import assert_likely
from tests.tasks.words import EXPECTED

SAMPLES = 40_000


def sampled(name: str, length: int, samples: int = SAMPLES, seed: int = 7) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return tasks.get(name).sample(samples, length, generator=generator).input


def tally(x: Tensor, size: int) -> list[int]:
    return torch.bincount(x.flatten(), minlength=size).tolist()


@pytest.mark.parametrize(
    ("name", "length"), [(name, n) for name, (_, lengths) in EXPECTED.items() for n in lengths]
)
def test_every_word_is_as_likely_as_it_should_be(name: str, length: int) -> None:
    words = EXPECTED[name][0](length)
    seen = Counter(map(tuple, sampled(name, length).tolist()))
    assert set(seen) <= set(words)
    assert_likely([seen[word] for word in words], [float(p) for p in words.values()])


def test_all_tasks_have_their_words_listed() -> None:
    assert list(EXPECTED) == tasks.names()


@pytest.mark.parametrize("counts", [[500, 500, 650], [600, 400], [0, 0, 100]])
def test_the_test_can_fail(counts: list[int]) -> None:
    with pytest.raises(AssertionError):
        assert_likely(counts, [1 / len(counts)] * len(counts))


# from here on: long words, whose number is beyond counting


@pytest.mark.parametrize("length", [40, 41, 500])
class TestLong:
    def test_simple_arithmetic(self, length: int) -> None:
        word = sampled("modular_arithmetic", length, 2000)
        assert_likely(tally(word[:, ::2], 5), [1 / 5] * 5)
        assert_likely(tally(word[:, 1::2] - 5, 3), [1 / 3] * 3)

    def test_stack(self, length: int) -> None:
        word = sampled("stack_manipulation", length, 8000)
        size = (word < 2).sum(1)
        assert_likely(tally(size - 1, length - 1), [1 / (length - 1)] * (length - 1))
        assert_likely(tally(word[word < 2], 2), [1 / 2] * 2)
        assert_likely(tally(word[word >= 2] - 2, 3), [1 / 3] * 3)

    @pytest.mark.parametrize("name", ["binary_addition", "binary_multiplication"])
    def test_operands(self, name: str, length: int) -> None:
        word = sampled(name, length, 8000)
        sign = (word == 2).long().argmax(1)
        assert_likely(tally(sign - 1, length - 2), [1 / (length - 2)] * (length - 2))
        # away from the ends of the numbers, where zero is excluded, bits are free
        assert_likely(tally(word[word[:, 0] == 1, 1], 3)[:2], [1 / 2] * 2)

    def test_missing_duplicate(self, length: int) -> None:
        word = sampled("missing_duplicate_string", length, 8000)
        places = length // 2 * 2
        assert_likely(tally((word == 2).long().argmax(1), places), [1 / places] * places)
        assert_likely(tally(word[word < 2], 2), [1 / 2] * 2)

    def test_root(self, length: int) -> None:
        assert_likely(tally(sampled("compute_sqrt", length, 2000), 2), [1 / 2] * 2)

    @pytest.mark.parametrize(
        ("name", "operators", "extra"),
        [("modular_arithmetic_brackets", 3, 0), ("solve_equation", 2, 2)],
    )
    def test_expressions(self, name: str, operators: int, extra: int, length: int) -> None:
        word, n = sampled(name, length, 4000), length - extra
        assert_likely(tally(word[word < 5], 5), [1 / 5] * 5)
        opening, closing = 5 + operators, 6 + operators
        # the nesting after every token
        depth = (word[:, :n] == opening).long().cumsum(1) - (word[:, :n] == closing).long().cumsum(
            1
        )
        assert depth[:, -1].eq(0).all()
        # operators that join two sides follow a digit, the unknown or a closing bracket
        before = torch.nn.functional.pad(word[:, : n - 1], (1, 0), value=opening)
        side = (before < 5) | (before == closing) | (before == 9)
        joins = side & (word[:, :n] >= 5) & (word[:, :n] < opening)
        assert_likely(tally(word[:, :n][joins] - 5, operators), [1 / operators] * operators)
        # the first split: where the nesting is one
        split = (joins & (depth == 1)).long().argmax(1) - 1
        assert_likely(tally(split - 1, n - 4), [1 / (n - 4)] * (n - 4))
        chances = depths(n)
        assert_likely(tally(depth.amax(1), len(chances)), chances)

    def test_unknown(self, length: int) -> None:
        """A digit is the unknown as often as the tokens are many from which it is the next."""
        word = sampled("solve_equation", length, 4000)[:, : length - 2]
        digits = (word < 5) | (word == 9)
        variance = surprise = 0.0
        for row, holder in zip(digits.tolist(), (word == 9).long().argmax(1).tolist(), strict=True):
            places = [place for place, yes in enumerate(row) if yes]
            turns = [*places[-1:], *places[:-1]]
            gaps = [(b - a - 1) % len(row) + 1 for a, b in zip(turns, places, strict=True)]
            gap = gaps[places.index(holder)]
            mean = sum(g * g for g in gaps) / len(row)
            variance += sum(g**3 for g in gaps) / len(row) - mean**2
            surprise += gap - mean
        assert abs(surprise) < 4 * math.sqrt(variance)


def depths(n: int) -> list[float]:
    """How likely an expression of n tokens has each depth of nesting, by its rule."""
    # at most d deep, for every size
    within = [[float(size <= 2) for size in range(n + 1)]]
    while within[-1][n] < 1 - 1e-12:
        last = within[-1]
        row = [1.0] * min(5, n + 1)
        row += [
            sum(last[a] * last[size - 3 - a] for a in range(1, size - 3)) / (size - 4)
            for size in range(5, n + 1)
        ]
        within.append(row)
    upto = [row[n] for row in within]
    upto[-1] = 1.0
    return [upto[0], *(b - a for a, b in pairwise(upto))]
