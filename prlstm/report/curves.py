"""Curves of training as a chart: Figure 3 of the paper."""

from collections.abc import Iterable, Sequence

from prlstm import tasks
from prlstm.files import Row
from prlstm.report.chart import Chart, Curve, Panel
from prlstm.report.columns import Column


def loss_over_time(
    rows: Iterable[Row], columns: Sequence[Column], names: Sequence[str], title: str
) -> Chart:
    """A panel for each task, a curve for each column: the loss over seconds of training."""
    known = list(rows)
    panels = []
    for name in names:
        here = [row for row in known if row["task"] == name and not row.get("failed")]
        curves = [
            Curve(column.title, seconds, loss, "done")
            for column in columns
            for seconds, loss in _joined([row for row in here if column.fits(row)])
        ]
        panels.append(Panel(tasks.get(name).paper_name, "seconds", "training loss", curves))
    return Chart(title, panels)


def _joined(rows: Sequence[Row]) -> list[tuple[list[float], list[float]]]:
    """The seconds and losses of every run, all its rows one after the other."""
    runs: dict[str, tuple[list[float], list[float]]] = {}
    for row in rows:
        seconds, loss = runs.setdefault(row["run"], ([], []))
        seconds += row["seconds"]
        loss += row["loss"]
    return list(runs.values())
