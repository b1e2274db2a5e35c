"""A chart as a figure of the page: its panels, what its lines mean, its numbers as tables."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from prlstm.report.chart import TOLD, Chart, Panel
from prlstm.report.looks import looks_of
from prlstm.report.page.colours import CURVES
from prlstm.report.page.panels import FEW, DrawnPanel, Mark, drawn, end_mark, point_mark
from prlstm.report.page.words import number

# behind the last colour they come again, thinner
LOOKS = 2 * CURVES
# lines of a table of numbers
MOST_LINES = 16


@dataclass(frozen=True)
class NumberTable:
    """Some points of a panel: a column for every curve, or curves one below the other."""

    title: str
    header: Sequence[str]
    lines: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Legend:
    """What a line means; a curve of few points has a mark at each."""

    label: str
    look: int
    mark: Mark | None


@dataclass(frozen=True)
class Figure:
    """What the page shows of a chart. `name` is its own in the page."""

    name: str
    title: str
    panels: Sequence[DrawnPanel]
    legend: Sequence[Legend]
    ends: Sequence[tuple[Mark, str]]
    numbers: Sequence[NumberTable]
    origins: Sequence[int]


def figure(name: str, chart: Chart, origins: Iterable[int] = ()) -> Figure:
    """The figure of a chart."""
    looks = looks_of(chart.labels, LOOKS)
    curves = [curve for panel in chart.panels for curve in panel.curves]
    few = {curve.label for curve in curves} - {c.label for c in curves if len(c.x) > FEW}
    ends = dict.fromkeys(curve.end for curve in curves)
    return Figure(
        name,
        chart.title.replace("\n", ": "),
        [drawn(panel, looks) for panel in chart.panels],
        [
            Legend(label, look, point_mark(look) if label in few else None)
            for label, look in looks.items()
        ],
        [(end_mark(end), TOLD[end]) for end in ends if end in TOLD],
        [_numbers(panel) for panel in chart.panels if any(len(c.x) for c in panel.curves)],
        sorted(set(origins)),
    )


def _numbers(panel: Panel) -> NumberTable:
    """A line for each x if all curves share them, otherwise a few points of each curve."""
    curves = [curve for curve in panel.curves if len(curve.x)]
    points = [dict(zip(curve.x, curve.y, strict=True)) for curve in curves]
    every = sorted({x for some in points for x in some})
    labels = [curve.label for curve in curves]
    if len(set(labels)) == len(labels) and len(every) <= 1.5 * max(map(len, points)):
        lines = [[number(x), *(_shown(some, x) for some in points)] for x in _some(every)]
        return NumberTable(panel.title, [panel.x, *labels], lines)
    tall = [
        [label, number(x), number(some[x])]
        for label, some in zip(labels, points, strict=True)
        for x in _some(list(some), 6)
    ]
    return NumberTable(panel.title, ["curve", panel.x, panel.y], tall)


def _shown(points: Mapping[float, float], x: float) -> str:
    return number(points[x]) if x in points else ""


def _some(values: Sequence[float], most: int = MOST_LINES) -> list[float]:
    """The first, the last, and some in between."""
    if len(values) <= most:
        return list(values)
    return [values[round(k * (len(values) - 1) / (most - 1))] for k in range(most)]
