"""Where everything of a panel stands in its picture: numbers and texts alone, no markup."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prlstm.report.chart import MARKS, Curve, End, Panel
from prlstm.report.page.axes import Axis, Tick
from prlstm.report.page.words import described

# of the picture, and of the part with curves; texts keep their size on a phone
WIDTH, HEIGHT = 360, 250
LEFT, RIGHT, TOP, BOTTOM = 56, 350, 10, 206
# so many points at most are written of one curve, and so few get a mark each
MOST_POINTS, FEW = 300, 4
# texts nearer than that would cover each other
LINE_HEIGHT = 12.0
# half the size of a mark
SIZE = 3.6
# signs of points, which are not those of ends: a shape, and whether it is filled
POINTS = (("o", True), ("d", True), ("o", False), ("d", False))


@dataclass(frozen=True)
class Mark:
    """A sign at a point: the outline of a shape, filled or not."""

    path: str
    filled: bool


@dataclass(frozen=True)
class DrawnCurve:
    """A line and its marks; `look` is the number of its colour and dashes."""

    look: int
    path: str
    marks: Sequence[Mark]


@dataclass(frozen=True)
class Level:
    """A level to compare with, and where its name stands."""

    name: str
    at: float
    text_at: float


@dataclass(frozen=True)
class Band:
    """A shaded part of the x-axis, and where its name stands."""

    name: str
    start: float
    width: float


@dataclass(frozen=True)
class DrawnPanel:
    """A panel as it is drawn."""

    title: str
    description: str
    x: str
    y: str
    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]
    levels: Sequence[Level]
    bands: Sequence[Band]
    curves: Sequence[DrawnCurve]


def drawn(panel: Panel, looks: Mapping[str, int]) -> DrawnPanel:
    """Where everything stands."""
    xs = [x for curve in panel.curves for x in curve.x]
    xs += [end for band in panel.bands.values() for end in band]
    ys = [y for curve in panel.curves for y in curve.y] + list(panel.lines.values())
    if panel.shares:
        ys = [0.0, 1.0]
    x = Axis.around(xs, LEFT, RIGHT, log=panel.log_x)
    y = Axis.around(ys, BOTTOM, TOP, log=panel.log_y)
    bands = [
        Band(name, start, round(x.place(last) - start, 1))
        for name, (first, last) in panel.bands.items()
        for start in (x.place(first),)
    ]
    return DrawnPanel(
        panel.title, described(panel), panel.x, panel.y, x.ticks(), y.ticks(),
        _levels(panel.lines, y), bands,
        # a solid line lies below those with gaps, which show it
        sorted(
            (_curve(curve, looks[curve.label], x, y) for curve in panel.curves),
            key=lambda curve: curve.look,
        ),
    )  # fmt: skip


def _levels(lines: Mapping[str, float], y: Axis) -> list[Level]:
    """Names stand above their lines, or further up where another name stands."""
    found: list[Level] = []
    known = [(name, level) for name, level in lines.items() if y.holds(level)]
    for name, level in sorted(known, key=lambda one: one[1]):
        at = y.place(level)
        text_at = at - 3
        if found:
            text_at = min(text_at, found[-1].text_at - LINE_HEIGHT)
        # what would leave the picture stands below its line
        found.append(Level(name, at, text_at if text_at > TOP + 6 else at + LINE_HEIGHT))
    return found


def _curve(curve: Curve, look: int, x: Axis, y: Axis) -> DrawnCurve:
    known = [(a, b) for a, b in zip(curve.x, curve.y, strict=True) if x.holds(a) and y.holds(b)]
    every = -(-len(known) // MOST_POINTS) or 1
    # the last point is where a curve ends
    some = known[::every] + ([known[-1]] if known and (len(known) - 1) % every else [])
    places = [(x.place(a), y.place(b)) for a, b in some]
    marks = [point_mark(look, *place) for place in places if len(places) <= FEW]
    if places and MARKS[curve.end]:
        marks = [*marks[:-1], _end(curve.end, *places[-1])]
    return DrawnCurve(look, _line(places), marks)


def _line(places: Sequence[tuple[float, float]]) -> str:
    """A path, each point told from the one before: that is shorter."""
    parts, before = [], (0.0, 0.0)
    for number, place in enumerate(places):
        moved = [
            f"{here - there:.1f}".removesuffix(".0")
            for here, there in zip(place, before, strict=True)
        ]
        parts.append(f"{'l' if number else 'M'}{moved[0]} {moved[1]}")
        before = place
    return "".join(parts)


def _end(end: End, x: float, y: float) -> Mark:
    return Mark(_shape(MARKS[end], x, y, SIZE), filled=end == "done")


def _shape(sign: str, x: float, y: float, size: float) -> str:
    """The outline of a sign around a point."""
    s, d = size, 2 * size
    if sign == "o":
        return f"M{x - s:.1f} {y:.1f}a{s} {s} 0 1 0 {d} 0a{s} {s} 0 1 0 {-d} 0z"
    if sign == "^":
        return f"M{x - s:.1f} {y + s:.1f}h{d}l{-s} {-d}z"
    if sign == "s":
        return f"M{x - s:.1f} {y - s:.1f}h{d}v{d}h{-d}z"
    if sign == "d":
        return f"M{x - s:.1f} {y:.1f}l{s} {s} {s} {-s} {-s} {-s}z"
    return f"M{x - s:.1f} {y - s:.1f}l{d} {d}m0 {-d}l{-d} {d}"


def end_mark(end: End) -> Mark:
    """The sign of an end, for a legend."""
    return _end(end, 13, 6)


def point_mark(look: int, x: float = 13, y: float = 6) -> Mark:
    """The sign of a point, which tells a curve of few points from the others."""
    sign, filled = POINTS[look % len(POINTS)]
    # a diamond is the smaller of two shapes as wide
    return Mark(_shape(sign, x, y, 3.4 if sign == "d" else 2.6), filled)
