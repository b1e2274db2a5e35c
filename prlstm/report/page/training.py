"""What runs learned over steps, as charts: the median of the seeds of each model."""

import statistics
from collections.abc import Iterable, Sequence

from prlstm import tasks
from prlstm.files import Row
from prlstm.report.chart import Chart, Curve, Panel
from prlstm.report.columns import TABLE2, TABLE3, Column
from prlstm.report.page.scores import best_of_models, known_tasks, named_by_model
from prlstm.report.scores import Cell

UNITS = {"loss": "training loss", "accuracy": "accuracy in training"}
SAID = {"loss": "Training loss", "accuracy": "Accuracy in training"}


def training_charts(
    rows: Sequence[Row], elsewhere: Sequence[Cell]
) -> list[tuple[str, Chart, list[Row]]]:
    """Charts that have something to show, each with a name and its rows."""
    found = []
    for number, columns in ((2, TABLE2), (3, TABLE3)):
        mine = [row for row in rows if any(column.fits(row) for column in columns)]
        for what in UNITS:
            title = f"{SAID[what]} over steps, models of Table {number}, median of the seeds"
            chart = over_steps(mine, columns, known_tasks(mine), what, title)
            found.append((f"training-{number}-{what}", chart, mine))
    best = best_of_models(elsewhere)
    mine = [row for row in rows if any(c.column.fits(row) for c in best.values())]
    for what in UNITS:
        panels = [
            panel
            for task, _, columns in named_by_model(best)
            for panel in over_steps(mine, columns, [task], what, "").panels
        ]
        title = f"{SAID[what]} over steps, other settings, median of the seeds"
        found.append((f"training-others-{what}", Chart(title, panels), mine))
    return [one for one in found if one[1].panels]


def over_steps(
    rows: Iterable[Row], columns: Sequence[Column], names: Sequence[str], what: str, title: str
) -> Chart:
    """A panel for each task that has rows, a curve for each column: `loss` or `accuracy`."""
    known = list(rows)
    panels = []
    for name in names:
        here = [row for row in known if row["task"] == name and not row.get("failed")]
        mine = [(column, [row for row in here if column.fits(row)]) for column in columns]
        curves = [Curve(column.title, *_median(some, what)) for column, some in mine if some]
        if curves:
            shares = what == "accuracy"
            panel = Panel(tasks.get(name).paper_name, "steps", UNITS[what], curves, shares=shares)
            panels.append(panel)
    return Chart(title, panels)


def _median(rows: Sequence[Row], what: str) -> tuple[list[int], list[float]]:
    """Over those runs that tell of a step; steps of which less than half of them tell do not count.

    Rows of a run follow each other, and a run that was begun anew tells of a step twice: the last
    counts.
    """
    by_step: dict[int, dict[str, float]] = {}
    for row in rows:
        for step, value in zip(row["step"], row[what], strict=True):
            by_step.setdefault(step, {})[row["run"]] = value
    runs = len({row["run"] for row in rows})
    some = {step: list(at.values()) for step, at in sorted(by_step.items()) if 2 * len(at) >= runs}
    return list(some), [statistics.median(values) for values in some.values()]
