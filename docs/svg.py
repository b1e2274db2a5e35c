"""Scenes as SVG: words that are read as words, and colours that follow a light or a dark page."""

import math
import re
from html import escape

from prlstm.report.scene import ROUND, Box, Line, Point, Scene, Shape, Words

# lengths of a scene are inches
POINTS, PIXELS = 72, 96
FONT = "system-ui, 'Segoe UI', 'Liberation Sans', Arial, sans-serif"
PAPER = "#ffffff"
# what a colour is on a dark page; those of filled boxes, and of words in them, are seen on both
DARK = {
    PAPER: "#1d2023",
    "#000000": "#e8e8e8",
    "#4a4a4a": "#c4c4c4",
    "#767676": "#a8a8a8",
    "#a8a8a8": "#7a7a7a",
    "#a0a0a0": "#6f6f6f",
    "#c9c9c9": "#6a6a6a",
    "#f7f7f7": "#292d31",
}
BLACK = "#000000"
ANCHORS = {"center": "middle", "left": "start", "right": "end"}
# how long an arrow's head is; it is half as wide to each side
HEAD = 5.5
# of a size: from the middle of a line of words to its foot, from line to line, of an index
MIDDLE, LEADING, INDEX = 0.35, 1.2, 0.72
SPELLED = {r"\ldots": "…", r"\ ": " "}


def as_svg(scene: Scene, title: str) -> str:
    """The scene as a file; shown as an image, it has the colours of its page."""
    width, height = scene.width * POINTS, scene.height * POINTS
    body = "\n".join(_drawn(shape, scene.height) for shape in scene.shapes)
    used = [colour for colour in DARK if _colour(colour) in body or colour == PAPER]
    light, dark = (";".join(f"{_name(c)}:{v}" for c, v in m.items())
                   for m in ({c: c for c in used}, {c: DARK[c] for c in used}))  # fmt: skip
    size = f'width="{_n(scene.width * PIXELS)}" height="{_n(scene.height * PIXELS)}"'
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {_n(width)} {_n(height)}">
<title>{escape(title)}</title>
<style>
svg{{{light};font-family:{FONT}}}
@media(prefers-color-scheme:dark){{svg{{{dark}}}}}
</style>
<rect width="{_n(width)}" height="{_n(height)}" rx="6" fill="{_colour(PAPER)}"/>
{body}
</svg>
"""


def _drawn(shape: Shape, height: float) -> str:
    points = [(x * POINTS, (height - y) * POINTS) for x, y in shape.points]
    match shape:
        case Line():
            return _line(shape, points)
        case Box():
            (left, bottom), (right, top) = points
            dashes = ' stroke-dasharray="4 3"' if shape.line == "dashed" else ""
            box = (
                f'<rect x="{_n(left)}" y="{_n(top)}" width="{_n(right - left)}" '
                f'height="{_n(bottom - top)}" rx="{_n(_corner(left, bottom, right, top))}" '
                f'fill="{_filled(shape.fill)}" stroke="{_filled(shape.edge)}"{dashes}/>'
            )
            middle = ((left + right) / 2, (bottom + top) / 2)
            words = Words([middle], shape.words, shape.size, BLACK)
            return box + (_words(words, middle, BLACK) if shape.words else "")
        case Words():
            return _words(shape, points[0], _colour(shape.colour))


def _corner(left: float, bottom: float, right: float, top: float) -> float:
    return min(ROUND * POINTS, (right - left) / 3, (bottom - top) / 3)


def _line(shape: Line, points: list[Point]) -> str:
    """A line, and at its end the head of an arrow, which it does not reach into."""
    colour, head = _colour(shape.colour), ""
    if shape.ends == "arrow":
        (x0, y0), (x, y) = points[-2:]
        long = math.hypot(x - x0, y - y0)
        dx, dy = HEAD * (x - x0) / long, HEAD * (y - y0) / long
        sides = [(x - dx - dy / 2, y - dy + dx / 2), (x - dx + dy / 2, y - dy - dx / 2)]
        head = f'<path d="{_path([(x, y), *sides])}z" fill="{colour}"/>'
        points = [*points[:-1], (x - dx, y - dy)]
    width = f'stroke="{colour}" stroke-width="{_n(shape.width)}"'
    return f'<path d="{_path(points)}" fill="none" {width}/>{head}'


def _path(points: list[Point]) -> str:
    return "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in points)


def _words(shape: Words, at: Point, colour: str) -> str:
    """Lines of words, one below the other, around a point."""
    lines = shape.words.split("\n")
    x, y = at
    texts = []
    for number, line in enumerate(lines):
        above = (number - (len(lines) - 1) / 2) * LEADING + MIDDLE
        texts.append(
            f'<text x="{_n(x)}" y="{_n(y + above * shape.size)}" font-size="{_n(shape.size)}" '
            f'text-anchor="{ANCHORS[shape.align]}" fill="{colour}">{_spelled(line, shape.size)}'
            "</text>"
        )
    return "".join(texts)


def _spelled(line: str, size: float) -> str:
    """Words as they are; between dollars slanted letters with indices."""
    parts = line.split("$")
    return "".join(_formula(p, size) if n % 2 else escape(p) for n, p in enumerate(parts))


def _formula(text: str, size: float) -> str:
    """`h_{13}` and the like."""
    for name, sign in SPELLED.items():
        text = text.replace(name, sign)
    made, low = [], False
    for found in re.finditer(r"_\{([^}]*)\}|_(.)|([^_]+)", text):
        index, rest = found[1] or found[2], found[3]
        drop = INDEX * size * 0.3 * (bool(index) - low)
        shift = f' dy="{_n(drop)}"' if drop else ""
        small = f' font-size="{_n(INDEX * size)}"' if index else ' font-style="italic"'
        made.append(f"<tspan{shift}{small}>{escape(index or rest)}</tspan>")
        low = bool(index)
    return "".join(made)


def _filled(colour: str) -> str:
    """Of a box: the frames alone change with the page."""
    return _colour(colour) if colour in ("#f7f7f7", "#a0a0a0") else colour


def _colour(colour: str) -> str:
    return f"var({_name(colour)})" if colour in DARK else colour


def _name(colour: str) -> str:
    return f"--c{colour.removeprefix('#')}"


def _n(number: float) -> str:
    """Short, and the same on every machine."""
    return f"{round(number, 1) + 0:g}"
