"""What guessing reaches, from rules, and from samples."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from prlstm import tasks
from prlstm.tasks.floors import SCORED, measure_floors


def bucket_sort() -> tuple[list[float], list[float]]:
    """The j-th token in order is at most v iff more than j of n tokens are."""
    position = []
    for n in SCORED:
        k = torch.arange(n + 1, dtype=torch.float64)
        ways = math.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)
        upto = [torch.zeros(n, dtype=torch.float64)]
        for v in range(1, 5):
            chance = (ways + k * math.log(v / 5) + (n - k) * math.log(1 - v / 5)).exp()
            upto.append(1 - chance.cumsum(0)[:n])
        upto.append(torch.ones(n, dtype=torch.float64))
        position.append(float(torch.stack(upto).diff(dim=0).amax(0).mean()))
    return [0.2] * len(SCORED), position


def modular_arithmetic_brackets() -> tuple[list[float], list[float]]:
    """The distribution of the value, from those of all shorter expressions."""
    table = torch.zeros(5, 5, 5, dtype=torch.float64)
    for a in range(5):
        for b in range(5):
            for value in (a + b, a - b, a * b):
                table[a, b, value % 5] += 1 / 3
    chance = torch.full((501, 5), 0.2, dtype=torch.float64)
    for n in range(5, 501):
        left, right = chance[1 : n - 3], chance[1 : n - 3].flip(0)
        chance[n] = torch.einsum("ia,ib,abv->v", left, right, table) / (n - 4)
    zero = [float(chance[n].amax()) for n in SCORED]
    return zero, zero


def stack_manipulation() -> tuple[list[float], list[float]]:
    """The distribution of the height: a walk that cannot fall below zero."""
    constant, position = [], []
    height = torch.zeros(502, dtype=torch.float64)
    size = torch.arange(502, dtype=torch.float64)
    for n in range(2, 501):
        # all that began with fewer tokens on the stack take one more step, and one more begins
        height[n - 1] += 1
        up, down = height.roll(1), height.roll(-1)
        up[0], down[-1] = 0, 0
        stays = torch.zeros_like(height)
        stays[0] = height[0]
        height = 2 / 3 * up + 1 / 3 * (down + stays)
        if n in SCORED:
            chance = height / height.sum()
            total, above = (chance * (size + 1)).sum(), 1 - chance.cumsum(0)
            constant.append(float((chance * size).sum() / 2 / total))
            position.append(float(torch.maximum(above / 2, chance).sum() / total))
    return constant, position


RULES = (bucket_sort, modular_arithmetic_brackets, stack_manipulation)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_floors_are_those_of_the_rules(rule: Callable[[], tuple[list[float], list[float]]]) -> None:
    floors = tasks.get(rule.__name__).floors
    constant, position = (sum(values) / len(values) for values in rule())
    assert floors.constant == pytest.approx(constant, abs=6e-4)
    assert floors.position == pytest.approx(position, abs=6e-4)


def test_what_the_benchmark_is_known_for() -> None:
    _, position = bucket_sort()
    assert position[0] == pytest.approx(0.780, abs=5e-4)
    assert position[-1] == pytest.approx(0.937, abs=6e-4)
    zero, _ = modular_arithmetic_brackets()
    assert (zero[0], zero[-1]) == pytest.approx((0.292, 0.316), abs=6e-4)
    assert tasks.get("bucket_sort").floors.best == 0.901


@pytest.mark.parametrize("name", tasks.names())
def test_floors_are_those_of_samples(name: str) -> None:
    floors, measured = tasks.get(name).floors, measure_floors(tasks.get(name), SCORED[::45], 512)
    assert floors.uniform == 1 / tasks.get(name).output_size
    assert floors.constant <= floors.position == floors.best
    assert measured.constant <= measured.position
    assert measured.constant == pytest.approx(floors.constant, abs=0.02)
    assert measured.position == pytest.approx(floors.position, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("name", tasks.names())
def test_floors_are_those_of_the_protocol(name: str) -> None:
    floors, measured = tasks.get(name).floors, measure_floors(tasks.get(name), SCORED, 512)
    assert measured.constant == pytest.approx(floors.constant, abs=0.003)
    assert measured.position == pytest.approx(floors.position, abs=0.004)


class Endings(tasks.Task):
    """The last bit of the word, then the terminator, then zeros; one bit in four is a one."""

    name, paper_name, level = "endings", "Endings", "R"
    symbols, answer_symbols, terminator = "01", "01$", 2

    def output_length(self, n: tasks.Size) -> tasks.Size:
        return n + 1

    def label(self, word: list[int]) -> list[int]:  # type: ignore[override]
        return [word[-1], 2, *[0] * (len(word) - 1)]

    def draw(self, numbers: Tensor, n: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        word = (numbers < 0.25).long()
        answer = torch.zeros(len(n), longest + 1, dtype=torch.long)
        answer[:, :1], answer[:, 1] = word.gather(1, n[:, None] - 1), 2
        return word, answer


def test_floors_of_a_task_that_says_none_are_measured() -> None:
    floors = Endings().floors
    assert floors.uniform == pytest.approx(1 / 3)
    # the terminator is half of what counts; who knows the place gets it, and three bits in four
    assert floors.constant == pytest.approx(0.5, abs=0.01)
    assert floors.position == pytest.approx(0.875, abs=0.01)
