"""Accuracy over the length of the words, as a chart: how far what was learned carries."""

from collections.abc import Mapping, Sequence

from prlstm import tasks
from prlstm.report.chart import Chart, Curve, Panel
from prlstm.report.columns import Column
from prlstm.report.scores import Cell

# lengths that are one point together: single ones move by what words were drawn
TOGETHER = 10
TRAINED = "trained on 1 to {longest}"
GUESSING = "guessing"
# the longest word of training, where a column does not say so
LONGEST, LONGEST_NAME = 40, "curriculum.longest"


def accuracy_over_length(
    cells: Mapping[tuple[str, str], Cell],
    columns: Sequence[Column],
    names: Sequence[str],
    title: str,
) -> Chart:
    """A panel for each task that has a score, a curve for the best seed of each column."""
    scored = [name for name in names if any(cells[name, one.name].seeds for one in columns)]
    return Chart(title, [_panel(cells, columns, name) for name in scored])


def _panel(cells: Mapping[tuple[str, str], Cell], columns: Sequence[Column], name: str) -> Panel:
    mine = [(column, cells[name, column.name]) for column in columns]
    longest = max((one.setting.get(LONGEST_NAME, LONGEST) for one in columns), default=LONGEST)
    return Panel(
        tasks.get(name).paper_name,
        "length of the word (tokens)",
        "accuracy",
        [_curve(column, cell) for column, cell in mine if cell.seeds],
        lines={GUESSING: tasks.get(name).floors.best},
        bands={TRAINED.format(longest=longest): (1, longest)},
        shares=True,
    )


def _curve(column: Column, cell: Cell) -> Curve:
    """Means over some lengths each, where they are in the middle."""
    best = cell.best_seed
    firsts = range(0, len(best.lengths), TOGETHER)
    some = [(best.lengths[k : k + TOGETHER], best.accuracy[k : k + TOGETHER]) for k in firsts]
    x = [sum(lengths) / len(lengths) for lengths, _ in some]
    y = [sum(shares) / len(shares) for _, shares in some]
    return Curve(column.title, x, y)
