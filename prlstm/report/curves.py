"""Curves of training as a chart: Figure 3 of the paper."""

from collections.abc import Iterable, Sequence

from prlstm import tasks
from prlstm.files import Row
from prlstm.report.chart import Chart, Curve, Panel
from prlstm.report.columns import Column, precision_of

Points = tuple[list[float], list[float]]


def loss_over_time(
    rows: Iterable[Row], columns: Sequence[Column], names: Sequence[str], title: str
) -> Chart:
    """A panel for each task, a curve for each run: the loss over seconds of training.

    Seconds of one machine or precision are not those of another: what was trained on each is a
    curve of its own, and where there are several the labels say which.
    """
    known = [row for row in rows if not row.get("failed")]
    mine = [row for row in known if any(column.fits(row) for column in columns)]
    are_many = [len({told(row) for row in mine}) > 1 for told in (_machine, precision_of)]
    panels = []
    for name in names:
        here = [row for row in mine if row["task"] == name]
        curves = [
            Curve(_label(column, row, are_many), seconds, loss, "done")
            for column in columns
            for row, (seconds, loss) in _joined([row for row in here if column.fits(row)])
        ]
        panels.append(Panel(tasks.get(name).paper_name, "seconds", "training loss", curves))
    return Chart(title, panels)


def _machine(row: Row) -> str:
    """Where a row was made. A GPU's threads tell nothing."""
    made_with = row["made_with"]
    threads = "" if made_with["cuda"] else f", threads: {made_with['threads']}"
    return f"{made_with['device']}{threads}"


def _label(column: Column, row: Row, are_many: Sequence[bool]) -> str:
    names = (_machine(row), precision_of(row))
    told = [name for name, many in zip(names, are_many, strict=True) if many]
    return f"{column.title} ({', '.join(told)})" if told else column.title


def _joined(rows: Sequence[Row]) -> list[tuple[Row, Points]]:
    """The seconds and losses of every run on every machine, each with one of its rows.

    Rows of a run follow each other, and their seconds are those of all training before. Where
    they do not go on, the run was begun anew in another folder: that is another curve.
    """
    found: list[tuple[Row, Points]] = []
    open_ones: dict[str, tuple[Row, Points]] = {}
    for row in rows:
        before = open_ones.get(row["run"])
        if before is None or not _goes_on(before, row):
            before = open_ones[row["run"]] = (row, ([], []))
            found.append(before)
        seconds, loss = before[1]
        seconds += row["seconds"]
        loss += row["loss"]
    return found


def _goes_on(before: tuple[Row, Points], row: Row) -> bool:
    first, (seconds, _) = before
    return _machine(first) == _machine(row) and row["seconds"][0] >= seconds[-1]
