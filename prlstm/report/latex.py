"""Text for LaTeX: what is special there is escaped, curves become pictures of pgfplots."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prlstm.report.figures import COLOURS

SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    **{c: "\\" + c for c in "&%$#_{}"},
}  # fmt: skip
DASHES = ("solid", "dashed", "dashdotted", "densely dotted")
# more points than this say nothing more on paper, and TeX's memory is small
MOST_POINTS = 200


@dataclass(frozen=True)
class LatexCurve:
    """A curve that looks as number `look` does, and ends with a mark."""

    look: int
    label: str
    x: Sequence[float]
    y: Sequence[float]
    mark: str


@dataclass(frozen=True)
class LatexAxis:
    """A pair of axes; `lines` are levels to compare with, `bands` parts of x that are shaded."""

    title: str
    x: str
    y: str
    log_x: bool
    log_y: bool
    lines: Sequence[float]
    curves: Sequence[LatexCurve]
    bands: Sequence[tuple[float, float]] = ()
    # from 0 to 1 on the y-axis
    shares: bool = False


def escape(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return "".join(SPECIAL.get(c, c) for c in text)


def group_plot(
    title: str,
    axes: Sequence[LatexAxis],
    columns: int,
    looks: Mapping[str, int],
    marks: Mapping[str, str],
) -> str:
    """Axes side by side, with one legend: how labels look, and what marks mean.

    Needs pgfplots and its library groupplots.
    """
    rows = -(-len(axes) // columns)
    lines = [
        r"% needs \usepackage{pgfplots}\usepgfplotslibrary{groupplots}\pgfplotsset{compat=1.17}",
        f"% {' '.join(title.encode('ascii', 'replace').decode().split())}",
        r"\begin{tikzpicture}",
        *(
            rf"\definecolor{{curve{number}}}{{HTML}}{{{colour[1:].upper()}}}"
            for number, colour in enumerate(COLOURS)
        ),
        r"\begin{groupplot}[",
        rf"  group style={{group size={columns} by {rows}, horizontal sep=1.6cm, "
        "vertical sep=1.8cm},",
        r"  width=6cm, height=5cm, title style={font=\small}, label style={font=\small},",
        r"  tick label style={font=\scriptsize}, legend columns=2,",
        r"  legend style={font=\scriptsize, draw=none}, legend cell align=left,",
        "]",
    ]
    for number, one in enumerate(axes):
        lines += _axis(one, looks if number == 0 else {}, marks if number == 0 else {})
    lines += [
        r"\end{groupplot}",
        r"\node[anchor=north] at ([yshift=-0.2cm]current bounding box.south)",
        r"  {\pgfplotslegendfromname{chartlegend}};",
        r"\end{tikzpicture}",
    ]
    return "\n".join(lines) + "\n"


def _axis(axis: LatexAxis, legend: Mapping[str, int], marks: Mapping[str, str]) -> list[str]:
    options = [f"title={{{escape(axis.title)}}}", f"xlabel={{{escape(axis.x)}}}"]
    options += [f"ylabel={{{escape(axis.y)}}}"]
    options += [
        f"{name}mode=log" for name, is_log in (("x", axis.log_x), ("y", axis.log_y)) if is_log
    ]
    if axis.shares:
        # a curve at 1 is seen below the frame
        options += ["ymin=-0.03", "ymax=1.03"]
    if legend:
        options.append("legend to name=chartlegend")
    lines = [rf"\nextgroupplot[{', '.join(options)}]"]
    for label, look in legend.items():
        lines += [rf"\addlegendimage{{{_look(look)}}}", rf"\addlegendentry{{{escape(label)}}}"]
    for mark, told in marks.items():
        image = f"gray, only marks, mark={mark}"
        lines += [rf"\addlegendimage{{{image}}}", rf"\addlegendentry{{{escape(told)}}}"]
    for left, right in axis.bands:
        lines.append(
            rf"\fill[gray!25] ({{axis cs:{left:g},0}} |- {{rel axis cs:0,0}}) rectangle "
            rf"({{axis cs:{right:g},0}} |- {{rel axis cs:0,1}});"
        )
    for curve in axis.curves:
        points = " ".join(f"({x:g},{y:g})" for x, y in _thinned(curve.x, curve.y))
        lines.append(rf"\addplot[{_look(curve.look)}, forget plot] coordinates {{{points}}};")
        if curve.mark and curve.x:
            last = f"({curve.x[-1]:g},{curve.y[-1]:g})"
            lines.append(
                rf"\addplot[{_look(curve.look)}, only marks, mark={curve.mark}, "
                r"mark options={solid}, forget plot] "
                rf"coordinates {{{last}}};"
            )
    for level in axis.lines:
        xs = [x for curve in axis.curves for x in curve.x]
        if xs:
            ends = f"({min(xs):g},{level:g}) ({max(xs):g},{level:g})"
            lines.append(rf"\addplot[gray, dotted, forget plot] coordinates {{{ends}}};")
    return lines


def _look(number: int) -> str:
    return f"curve{number % len(COLOURS)}, {DASHES[number % len(DASHES)]}, thick"


def _thinned(x: Sequence[float], y: Sequence[float]) -> list[tuple[float, float]]:
    """Evenly chosen points, the last among them; without those that are no numbers."""
    points = [p for p in zip(x, y, strict=True) if all(map(math.isfinite, p))]
    every = max(1, -(-len(points) // MOST_POINTS))
    return [*points[:-1:every], *points[-1:]]
