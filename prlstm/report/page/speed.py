"""Figure 4 and Table 1 as figures of the page."""

from collections.abc import Sequence
from functools import cache

from prlstm.files import Row
from prlstm.report.chart import Chart
from prlstm.report.growth import Line, table
from prlstm.report.growth_charts import gradients_chart, paths_chart, times_chart
from prlstm.report.page.figures import Figure, figure
from prlstm.report.page.origins import Origins
from prlstm.report.reference import is_alike, reference_chart, with_reference
from prlstm.report.scaling import chart_of, points_of
from prlstm.tree.counts import counts, over_distance

# what is counted in the tree: lengths and distances
LONGEST = 4096
LENGTHS = tuple(2**k for k in range(1, 13))
DISTANCES = (*(2**k for k in range(12)), *(3 * 2**k for k in range(11)))


def scaling_figures(rows: Sequence[Row], origins: Origins) -> list[Figure]:
    """One for each device and setting, with the curves of others where they were measured alike.

    Where none was, these have a figure of their own.
    """
    figures, is_shown = [], False
    for number, some in enumerate(_alike(rows), 1):
        chart = chart_of(points_of(some, []))
        if all(map(is_alike, some)):
            chart, is_shown = with_reference(chart), True
        figures.append(figure(f"scaling-{number}", chart, origins.numbers(some)))
    if not is_shown:
        figures.append(figure("scaling-others", reference_chart(), []))
    return figures


def _alike(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows that belong into one chart; a Transformer has its own width beside every other."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        key = (row["made_with"].get("device"), row["task"], row["batch"], row["stop_ms"])
        groups.setdefault(key, []).append(row)
    found = []
    for some in groups.values():
        widths = sorted({row["hidden_size"] for row in some} - {None})
        found += [
            [row for row in some if row["hidden_size"] in (None, width)]
            for width in widths or [None]
        ]
    return found


@cache
def _counted() -> Chart:
    """No row changes what is counted."""
    apart = over_distance(LONGEST, sorted(DISTANCES))
    return paths_chart([counts(length) for length in LENGTHS], LONGEST, apart)


def growth_lines(rows: Sequence[Row]) -> list[Line]:
    """Table 1: counted, and fitted to what rows say."""
    return table(counts(LONGEST), rows)


def growth_figures(
    growth: Sequence[Row], gradients: Sequence[Row], origins: Origins
) -> list[Figure]:
    """Work, depth and paths are counted; times and gradients are there where rows are."""
    charts: list[tuple[str, Chart, Sequence[Row]]] = [("paths", _counted(), [])]
    if growth:
        charts.append(("times", times_chart(growth), growth))
    if gradients:
        charts.append(("gradients", gradients_chart(gradients), gradients))
    return [figure(name, chart, origins.numbers(rows)) for name, chart, rows in charts]
