"""Boxes, lines and words at places in inches: drawn as a picture, or written as TikZ."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from prlstm.report.latex import escape

Point = tuple[float, float]
# of a corner, in inches
ROUND = 0.05
# of a page with usual margins, in inches
TEXT_WIDTH = 6.5
ANCHORS = {"center": "", "left": ", anchor=west", "right": ", anchor=east"}


@dataclass(frozen=True)
class Line:
    """A line through points; `ends` in an arrow or not."""

    points: Sequence[Point]
    colour: str
    width: float = 1.0
    ends: Literal["plain", "arrow"] = "plain"


@dataclass(frozen=True)
class Box:
    """A box between two corners, lower left and upper right, with words in it."""

    points: Sequence[Point]
    fill: str
    edge: str
    words: str = ""
    size: float = 9
    line: Literal["solid", "dashed"] = "solid"


@dataclass(frozen=True)
class Words:
    """Words at a point, mathematics between dollars."""

    points: Sequence[Point]
    words: str
    size: float = 9
    colour: str = "#000000"
    align: Literal["center", "left", "right"] = "center"


Shape = Line | Box | Words


@dataclass(frozen=True)
class Scene:
    """Shapes on a sheet, the later ones above the earlier."""

    width: float
    height: float
    shapes: Sequence[Shape]

    def moved(self, right: float, up: float) -> list[Shape]:
        """The shapes at other places."""
        return [
            replace(one, points=[(x + right, y + up) for x, y in one.points]) for one in self.shapes
        ]


def as_figure(scene: Scene) -> Figure:
    """The scene as a picture of its own size."""
    figure = Figure(figsize=(scene.width, scene.height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, scene.width)
    axes.set_ylim(0, scene.height)
    axes.axis("off")
    for depth, shape in enumerate(scene.shapes):
        match shape:
            case Line():
                xs, ys = zip(*shape.points, strict=True)
                axes.plot(xs, ys, color=shape.colour, linewidth=shape.width, zorder=depth)
                if shape.ends == "arrow":
                    start, stop = shape.points[-2:]
                    axes.add_patch(
                        FancyArrowPatch(
                            start,
                            stop,
                            arrowstyle="-|>",
                            mutation_scale=8,
                            color=shape.colour,
                            linewidth=shape.width,
                            shrinkA=0,
                            shrinkB=0,
                            zorder=depth,
                        )
                    )
            case Box():
                (left, low), (right, high) = shape.points
                axes.add_patch(
                    FancyBboxPatch(
                        (left + ROUND, low + ROUND),
                        right - left - 2 * ROUND,
                        high - low - 2 * ROUND,
                        boxstyle=f"round,pad={ROUND}",
                        facecolor=shape.fill,
                        edgecolor=shape.edge,
                        linewidth=1,
                        linestyle=shape.line,
                        zorder=depth,
                    )
                )
                middle = ((left + right) / 2, (low + high) / 2)
                axes.text(
                    *middle,
                    shape.words,
                    fontsize=shape.size,
                    ha="center",
                    va="center",
                    zorder=depth,
                )
            case Words():
                axes.text(
                    *shape.points[0],
                    shape.words,
                    fontsize=shape.size,
                    color=shape.colour,
                    ha=shape.align,
                    va="center",
                    zorder=depth,
                )
    return figure


def as_tikz(scene: Scene) -> str:
    """The scene for a document, which includes it; the package tikz is needed.

    What is wider than a page's text is made as wide as that.
    """
    colours = dict.fromkeys(name for shape in scene.shapes for name in _colours(shape))
    names = {colour: f"scene{number}" for number, colour in enumerate(colours)}
    lines = [
        r"% needs \usepackage{tikz}",
        r"\begin{tikzpicture}[x=1in, y=1in]",
        *(rf"\definecolor{{{n}}}{{HTML}}{{{c[1:].upper()}}}" for c, n in names.items()),
    ]
    for shape in scene.shapes:
        match shape:
            case Line():
                arrow = ", -latex" if shape.ends == "arrow" else ""
                path = " -- ".join(map(_point, shape.points))
                look = f"{names[shape.colour]}, line width={shape.width:g}pt{arrow}"
                lines.append(rf"\draw[{look}] {path};")
            case Box():
                corners = " rectangle ".join(map(_point, shape.points))
                look = f"{names[shape.edge]}, fill={names[shape.fill]}, {shape.line}"
                lines.append(rf"\draw[{look}, rounded corners=2.5pt] {corners};")
                if shape.words:
                    (left, low), (right, high) = shape.points
                    middle = ((left + right) / 2, (low + high) / 2)
                    lines.append(_node(middle, "align=center", shape.words, shape.size))
            case Words():
                look = f"{names[shape.colour]}, align={shape.align}{ANCHORS[shape.align]}"
                lines.append(_node(shape.points[0], look, shape.words, shape.size))
    lines.append(r"\end{tikzpicture}")
    if scene.width > TEXT_WIDTH:
        # tikz brings the package for it
        lines = [lines[0], r"\noindent\resizebox{\linewidth}{!}{%", *lines[1:-1], lines[-1] + "}%"]
    return "\n".join(lines) + "\n"


def _colours(shape: Shape) -> Iterable[str]:
    return (shape.fill, shape.edge) if isinstance(shape, Box) else (shape.colour,)


def _point(point: Point) -> str:
    return f"({point[0]:.4g},{point[1]:.4g})"


def _node(at: Point, look: str, words: str, size: float) -> str:
    """Words of a size; those outside of mathematics are escaped."""
    parts = words.split("$")
    text = "$".join(part if n % 2 else escape(part) for n, part in enumerate(parts))
    text = text.replace("\n", r"\\")
    font = rf"\fontsize{{{size:g}}}{{{1.2 * size:g}}}\selectfont"
    return rf"\node[{look}, inner sep=0pt, font={font}] at {_point(at)} {{{text}}};"
