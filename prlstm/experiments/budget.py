"""What is trained next: all in order, or what tells most for its time."""

import math
import re
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from prlstm.experiments.crew import Choice
from prlstm.experiments.runs import Store, Wanted
from prlstm.report.paper import tables
from prlstm.training import Request

# every cell is seen after so many steps, then after some three times as many, and so on
MILESTONES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
# steps are given in portions of so many
PORTION = 1_000
# a cell that is as good as the paper's still gets what is left: as if it were this far away
LEAST_GAP = 0.003
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True)
class Standing:
    """How far a cell is: the step that is scored, that from which training goes on, its score.

    `kind` tells cells that take about the same time. `seconds_per_step` and `score_seconds`, of a
    score, are those of the whole stack; of a cell that nobody has seen they are not known.
    """

    scored: int
    made: int
    score: float | None
    paper: float | None
    kind: str = ""
    seconds_per_step: float = 0.0
    score_seconds: float = 0.0

    def seconds_to(self, goal: int) -> float:
        """How long it takes to train to a step and to score it."""
        return max(0, goal - self.made) * self.seconds_per_step + self.score_seconds


def in_order(cells: Sequence[Wanted], request: Request, store: Store) -> Choice:
    """Every cell as far as is asked, one after the other."""

    def choose(busy: Collection[int]) -> tuple[int, Request] | None:
        for number, cell in enumerate(cells):
            if number not in busy and store.missing(cell, request):
                return number, request
        return None

    return choose


def by_gain(
    cells: Sequence[Wanted], request: Request, store: Store, table: str, deadline: float
) -> Choice:
    """What tells most for its time, until the clock (`time.monotonic`) says so."""

    def choose(busy: Collection[int]) -> tuple[int, Request] | None:
        left = deadline - time.monotonic()
        free = [number for number in range(len(cells)) if number not in busy]
        found = best_next(
            [_standing(cells[n], store, table, request) for n in free], request.steps, left
        )
        if found is None:
            return None
        place, goal = found
        return free[place], replace(request, steps=goal)

    return choose


def best_next(
    standings: Sequence[Standing], steps: int, seconds_left: float
) -> tuple[int, int] | None:
    """Which cell is trained next, and to which step; None if nothing fits into the time.

    First those that nobody has seen; then where the distance to the paper's score is greatest for
    the time that the next milestone takes. A cell that nobody has seen is left alone if others of
    its kind, or if there are none the quickest of all, say that it would take too long.
    """
    if seconds_left <= 0:
        return None
    first = next_milestone(0, steps)
    for number, one in enumerate(standings):
        if one.scored == 0 and _least(one, standings, first) <= seconds_left:
            return number, first
    gains = []
    for number, one in enumerate(standings):
        for_steps = seconds_left - one.score_seconds
        fitting = one.made + int(for_steps / max(one.seconds_per_step, 1e-9)) // PORTION * PORTION
        goal = min(next_milestone(one.scored, steps), fitting)
        if goal > one.scored > 0:
            gains.append((_gap(one) / max(1e-9, one.seconds_to(goal)), -number, goal))
    if not gains:
        return None
    _, number, goal = max(gains)
    return -number, goal


def _least(unseen: Standing, standings: Sequence[Standing], goal: int) -> float:
    """What others that are seen let expect of one that is not, at the least; nothing of none."""
    seen = [one for one in standings if one.scored]
    alike = [one for one in seen if one.kind == unseen.kind] or seen
    return min((replace(one, made=unseen.made).seconds_to(goal) for one in alike), default=0.0)


def next_milestone(step: int, steps: int) -> int:
    """The step at which a cell that stands at `step` is scored next."""
    return min(steps, next((at for at in MILESTONES if at > step), steps))


def _gap(one: Standing) -> float:
    """How far a score is from the paper's; what the paper does not have, from all right."""
    goal = 1.0 if one.paper is None else one.paper
    return max(LEAST_GAP, goal - (one.score or 0.0))


def _standing(cell: Wanted, store: Store, table: str, request: Request) -> Standing:
    answers = store.answers(cell, request)
    rows = [row for row in answers if not row.get("failed")]
    steps = {config.name: 0 for config in cell.configs}
    for row in rows:
        steps[row["run"]] = max(steps[row["run"]], row["step"])
    # nobody waits for a run that failed
    steps |= {row["run"]: request.steps for row in answers if row.get("failed")}
    percent = tables().get(table, {}).get(cell.column.name, {}).get(cell.task)
    return Standing(
        scored=min(steps.values()),
        made=store.made(cell),
        score=max((row["score"] for row in rows), default=None),
        paper=None if percent is None else percent / 100,
        kind=cell.column.name,
        seconds_per_step=max((row["seconds"] / row["step"] for row in rows), default=0.0),
        score_seconds=max((row.get("score_seconds", 0.0) for row in rows), default=0.0),
    )


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
