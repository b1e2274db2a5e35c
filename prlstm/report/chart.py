"""Charts: panels of curves, described once; written as CSV, as LaTeX, as SVG and PNG."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from prlstm.files import write_whole
from prlstm.report.figures import COLOURS, GREY, STYLES, save_figure
from prlstm.report.latex import LatexAxis, LatexCurve, group_plot
from prlstm.report.looks import looks_of

# how a curve ends: where it was done, where it took too long, where memory ran out
End = Literal["", "done", "time", "memory", "refused"]
MARKS: Mapping[End, str] = {"": "", "done": "o", "time": "^", "memory": "s", "refused": "x"}
LATEX_MARKS: Mapping[End, str] = {
    "": "", "done": "*", "time": "triangle", "memory": "square", "refused": "x",
}  # fmt: skip
TOLD: Mapping[End, str] = {
    "time": "stopped: too slow",
    "memory": "stopped: out of memory",
    "refused": "stopped: refused by the library",
}
# all pairs of a colour and a style
LOOKS = len(COLOURS) * len(STYLES)
# inches of a panel
WIDTH, HEIGHT = 4.2, 3.3


@dataclass(frozen=True)
class Curve:
    """Points of one curve; curves of one label look the same in all panels."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    end: End = ""


@dataclass(frozen=True)
class Panel:
    """One pair of axes. `lines` are levels to compare with: their names and where they are.

    `bands` are parts of the x-axis that mean something, by what they mean; `shares` are on the
    y-axis, which then reaches from 0 to 1.
    """

    title: str
    x: str
    y: str
    curves: Sequence[Curve]
    log_x: bool = False
    log_y: bool = False
    lines: Mapping[str, float] = field(default_factory=dict)
    bands: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    shares: bool = False


@dataclass(frozen=True)
class Chart:
    """Panels side by side, `columns` in a row."""

    title: str
    panels: Sequence[Panel]
    columns: int = 3

    @property
    def labels(self) -> list[str]:
        """All labels, in the order in which they come."""
        return list(dict.fromkeys(curve.label for one in self.panels for curve in one.curves))


def write_chart(chart: Chart, stem: Path) -> list[Path]:
    """Write `stem` with the endings csv, tex, svg and png."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["panel", "curve", "x", "y", "end"])
    for panel in chart.panels:
        for curve in panel.curves:
            last = len(curve.x) - 1
            for place, (x, y) in enumerate(zip(curve.x, curve.y, strict=True)):
                end = curve.end if place == last else ""
                table.writerow([panel.title, curve.label, x, y, end])
    paths = [stem.with_name(f"{stem.name}.{ending}") for ending in ("csv", "tex")]
    write_whole(paths[0], text.getvalue().encode())
    write_whole(paths[1], as_latex(chart).encode())
    return [*paths, *save_figure(draw(chart), stem)]


def draw(chart: Chart) -> Figure:
    """The chart as a picture."""
    columns = min(chart.columns, len(chart.panels))
    rows = -(-len(chart.panels) // columns)
    figure = Figure(figsize=(WIDTH * columns, HEIGHT * rows + 0.9), layout="constrained")
    figure.suptitle(chart.title)
    grid = list(figure.subplots(rows, columns, squeeze=False).flat)
    looks = {label: _look(number) for label, number in looks_of(chart.labels, LOOKS).items()}
    for axes, panel in zip(grid, chart.panels, strict=False):
        _draw_panel(axes, panel, looks)
    for axes in grid[len(chart.panels) :]:
        axes.remove()
    handles = [Line2D([], [], color=c, linestyle=s, label=n) for n, (c, s) in looks.items()]
    ends = dict.fromkeys(curve.end for one in chart.panels for curve in one.curves)
    handles += [
        Line2D(
            [],
            [],
            color=GREY,
            linestyle="",
            marker=MARKS[end],
            markerfacecolor="none",
            label=TOLD[end],
        )
        for end in ends
        if end in TOLD
    ]
    # as many side by side as the figure is wide
    widest = max((len(str(handle.get_label())) for handle in handles), default=1)
    fitting = max(1, int(WIDTH * columns * 11 / (widest + 8)))
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=fitting, frameon=False)
    return figure


def _look(number: int) -> tuple[str, Any]:
    """Colour and style: curves that cover each other are still seen."""
    return COLOURS[number % len(COLOURS)], STYLES[number % len(STYLES)]


def _draw_panel(axes: Axes, panel: Panel, looks: Mapping[str, tuple[str, Any]]) -> None:
    for curve in panel.curves:
        colour, style = looks[curve.label]
        alone = "." if len(curve.x) == 1 else ""
        axes.plot(curve.x, curve.y, style, color=colour, marker=alone, linewidth=1.5)
        if curve.end and len(curve.x):
            axes.plot(
                curve.x[-1], curve.y[-1], MARKS[curve.end], color=colour, markersize=7,
                markerfacecolor=colour if curve.end == "done" else "none",
            )  # fmt: skip
    axes.set_title(panel.title, fontsize="medium")
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    axes.set_xscale("log" if panel.log_x else "linear")
    axes.set_yscale("log" if panel.log_y else "linear")
    for axis, is_log in ((axes.xaxis, panel.log_x), (axes.yaxis, panel.log_y)):
        if is_log:
            _mark_logarithms(axis)
    for name, level in panel.lines.items():
        axes.axhline(level, color=GREY, linestyle=":", linewidth=1)
        axes.annotate(
            name, (0, level), (3, 2), xycoords=("axes fraction", "data"),
            textcoords="offset points", fontsize="small", color=GREY,
        )  # fmt: skip
    for name, (first, last) in panel.bands.items():
        axes.axvspan(first, last, color=GREY, alpha=0.15, linewidth=0)
        axes.annotate(
            name, (last, 0.03), (4, 0), xycoords=("data", "axes fraction"),
            textcoords="offset points", fontsize="small", color=GREY,
        )  # fmt: skip
    if panel.shares:
        axes.set_ylim(-0.03, 1.03)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _mark_logarithms(axis: Axis) -> None:
    """Powers of ten; over two decades or less some numbers between them, which fit."""
    axis.set_minor_formatter(NullFormatter())
    least, most = axis.get_data_interval()
    if least > 0 and most <= 100 * least:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def as_latex(chart: Chart) -> str:
    """The chart as a picture of pgfplots, to be put into a document."""
    looks = looks_of(chart.labels, LOOKS)
    axes = [
        LatexAxis(
            panel.title, panel.x, panel.y, panel.log_x, panel.log_y, tuple(panel.lines.values()),
            [
                LatexCurve(looks[one.label], one.label, one.x, one.y, LATEX_MARKS[one.end])
                for one in panel.curves
            ],
            tuple(panel.bands.values()), panel.shares,
        )
        for panel in chart.panels
    ]  # fmt: skip
    ends = dict.fromkeys(curve.end for one in chart.panels for curve in one.curves)
    marks = {LATEX_MARKS[end]: TOLD[end] for end in ends if end in TOLD}
    columns = min(chart.columns, len(chart.panels))
    return group_plot(chart.title, axes, columns, looks, marks)
