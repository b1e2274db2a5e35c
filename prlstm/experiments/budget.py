"""What is trained next: all in order, or what tells most for its time."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

# every cell is seen after so many steps, then after some three times as many, and so on
MILESTONES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
# steps are given in portions of so many
PORTION = 1_000
# a cell that is as good as the paper's still gets what is left: as if it were this far away
LEAST_GAP = 0.003
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True)
class Standing:
    """How far a cell is: steps made, the score they reached, what the paper reports."""

    step: int
    score: float | None
    paper: float | None
    seconds_per_step: float | None


def next_milestone(step: int, steps: int) -> int:
    """The step at which a cell that stands at `step` is scored next."""
    return min(steps, next((at for at in MILESTONES if at > step), steps))


def choose(
    standings: Sequence[Standing], steps: int, seconds_left: float
) -> tuple[int, int] | None:
    """Which cell is trained next, and to which step; None if nothing fits into the time.

    First those that nobody has seen; then where the distance to the paper's score is greatest for
    the time that the next milestone takes.
    """
    for number, one in enumerate(standings):
        if one.step == 0:
            return number, next_milestone(0, steps)
    gains = []
    for number, one in enumerate(standings):
        goal = next_milestone(one.step, steps)
        each = one.seconds_per_step
        assert each is not None, "what was trained has taken time"
        if goal == one.step:
            continue
        fitting = one.step + int(seconds_left / max(each, 1e-9)) // PORTION * PORTION
        goal = min(goal, fitting)
        if goal <= one.step:
            continue
        gains.append((_gap(one) / ((goal - one.step) * each), -number, goal))
    if not gains:
        return None
    _, number, goal = max(gains)
    return -number, goal


def _gap(one: Standing) -> float:
    """How far a score is from the paper's; what the paper does not have, from all right."""
    goal = 1.0 if one.paper is None else one.paper
    return max(LEAST_GAP, goal - (one.score or 0.0))


def read_budget(text: str) -> float:
    """Seconds of a time as `90s`, `20m` or `1h30m`.

    >>> read_budget("1h30m")
    5400.0
    """
    found = re.fullmatch(r"(?:\d+(?:\.\d+)?[smhd])+", text.strip().lower())
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", text.strip().lower())
    seconds = math.fsum(float(number) * UNITS[unit] for number, unit in parts)
    if not found or not 0 < seconds < math.inf:
        raise ValueError(f"{text!r:.40}: expected a time as in 90s, 20m or 1h30m")
    return seconds
