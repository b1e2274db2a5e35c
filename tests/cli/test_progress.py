"""How far the cells of a table are, and how long the rest takes."""

import pytest
from rich.console import Console

from prlstm.cli.reproduce import progress
from prlstm.cli.reproduce.progress import Standing, shown
from prlstm.experiments.crew import WAITING, Heard
from prlstm.experiments.runs import Wanted
from prlstm.report.columns import TABLE2

CELLS = [Wanted(task, TABLE2[0], (0,), "float32") for task in ("even_pairs", "parity_check")]


class Clock:
    """A clock that stands still until somebody moves it."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def standing(clock: Clock, ends: float | None = None) -> Standing:
    return Standing(CELLS, 100, set(), ends, clock.now)


def tell(one: Standing, clock: Clock, cell: int, after: float, what: str, step: int = 100) -> None:
    clock.now += after
    one.hear(Heard(cell, what, step, 100))


def test_scores_are_a_part_of_the_rest(clock: Clock) -> None:
    one = standing(clock)
    assert one.left is None
    tell(one, clock, 0, 0, "training", 0)
    tell(one, clock, 0, 5, "training", 50)
    # ten steps a second, for two cells
    assert one.left == pytest.approx(15)
    tell(one, clock, 0, 5, "scoring, 0 %")
    # how long that takes, nobody knows yet
    tell(one, clock, 0, 20, "scoring, 50 %")
    assert one.left is None
    assert one.said() == "0 of 2 cells done"
    tell(one, clock, 0, 20, "done")
    assert one.left == pytest.approx(10 + 40)
    tell(one, clock, 1, 0, "training", 0)
    tell(one, clock, 1, 10, "scoring, 0 %")
    assert one.left == pytest.approx(40)
    tell(one, clock, 1, 30, "scoring, 70 %")
    assert one.left == pytest.approx(10)
    assert one.said() == "1 of 2 cells done, 0:10 left"


def test_cells_side_by_side_take_half_as_long(clock: Clock) -> None:
    one = standing(clock)
    for cell in (0, 1):
        tell(one, clock, cell, 0, "training", 0)
    clock.now += 10
    for cell in (0, 1):
        tell(one, clock, cell, 0, "training", 25)
    assert one.left == pytest.approx(30)


def test_a_budget_ends_when_it_ends(clock: Clock) -> None:
    one = standing(clock, ends=clock.now + 60)
    tell(one, clock, 0, 45, "done")
    assert one.said() == "1 of 2 cells seen, 0:15 left"
    clock.now += 100
    assert one.left == 0


def test_units_that_wait_for_a_place_are_told(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    one = standing(clock)
    tell(one, clock, 0, 0, "training", 0)
    tell(one, clock, 0, 10, "training", 50)
    tell(one, clock, 1, 0, WAITING, 0)
    tell(one, clock, 0, 0, WAITING, 0)
    assert one.said() == "0 of 2 cells done, 0:30 left; 2 units wait for a place"
    # no time of training
    clock.now += 100
    tell(one, clock, 0, 0, "training", 50)
    assert one.training == 10
    assert one.said().endswith("; 1 unit waits for a place")
    tell(one, clock, 1, 0, "failed", 0)
    assert "wait" not in one.said()

    with shown(Console(width=200), CELLS, 100, set(), None) as listen:
        for _ in range(3):
            for cell in (0, 1):
                listen(Heard(cell, WAITING))
            clock.now += 4
    assert capsys.readouterr().out == "0 of 2 cells done; 2 units wait for a place\n"
    with shown(Console(width=200, force_terminal=True), CELLS, 100, set(), None) as listen:
        listen(Heard(0, WAITING))
    assert "0 of 2 cells done; 1 unit waits for a place" in capsys.readouterr().out
