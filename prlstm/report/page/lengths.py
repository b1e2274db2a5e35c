"""Accuracy over length: of the tables' models, and of runs of other settings."""

from collections.abc import Iterable, Sequence

from prlstm.report.chart import Chart
from prlstm.report.lengths import accuracy_over_length
from prlstm.report.page.scores import best_of_models, named_by_model
from prlstm.report.score_table import ScoreTable
from prlstm.report.scores import Cell


def over_lengths(
    tables: Iterable[ScoreTable], elsewhere: Sequence[Cell]
) -> list[tuple[str, Chart, list[Cell]]]:
    """Charts that have something to show, each with a name and the cells it shows."""
    found = []
    for table in tables:
        some = [task for task in table.tasks if any(cell.seeds for cell in table.row(task))]
        title = f"Best seed of each model of {table.title}"
        chart = accuracy_over_length(table.cells, table.columns, some, title)
        found.append((f"lengths-{table.title[-1]}", chart, [*table.cells.values()]))
    best = best_of_models(elsewhere)
    panels = [
        panel
        for task, cells, columns in named_by_model(best)
        for panel in accuracy_over_length(cells, columns, [task], "").panels
    ]
    chart = Chart("Best run of each model with other settings", panels)
    found.append(("lengths-others", chart, list(best.values())))
    return [one for one in found if one[1].panels]
