"""The LSTM block beside a Transformer encoder's: parts that correspond have one colour."""

from collections.abc import Sequence

from prlstm.report.figures import GREY
from prlstm.report.scene import Box, Line, Point, Scene, Shape, Words

# fill and edge, told apart by people who do not see all colours
EMBEDDING = ("#f0a884", "#d55e00")
MERGE = ("#c9c9c9", "#555555")
MIX, ADD, EACH = ("#a3cdea", "#0072b2"), ("#f6dd9f", "#b57b00"), ("#a6dbc5", "#00734f")
FRAME, DARK = ("#f7f7f7", "#a0a0a0"), "#4a4a4a"
# inches: of a part, between centres, and where the way around it runs
WIDE, HIGH, ASIDE = 1.75, 0.42, 1.18
WIDTH, HEIGHT = 6.3, 5.95
# centres of the four parts
LEVELS = (1.2, 2.05, 3.62, 4.47)


def blocks_scene() -> Scene:
    """Both blocks, data going up."""
    parts = [
        ("two-state gates", MIX), ("forget, add, activate", ADD),
        ("one-state gates", EACH), ("forget, add, activate", ADD),
    ]  # fmt: skip
    others = [
        ("multi-head attention", MIX), ("add & norm", ADD),
        ("feed-forward", EACH), ("add & norm", ADD),
    ]  # fmt: skip
    lstm, transformer = 1.65, 4.85
    return Scene(WIDTH, HEIGHT, [*_lstm(lstm, parts), *_transformer(transformer, others)])


Parts = Sequence[tuple[str, tuple[str, str]]]


def _lstm(x: float, parts: Parts) -> list[Shape]:
    """The composition of two states, then the refinement of one."""
    one, two, three, four = LEVELS
    shapes = _frames(x, "binary\ncomposition", "unary refinement,\nR times")
    shapes += [
        *_up(x, (0.45, one), (one, two), (two, three), (three, four), (four, 5.52)),
        # the cells pass the gates by
        _around(x, [(x - ASIDE, 0.45), (x - ASIDE, two)]),
        _around(x, [(x - 0.5, two), (x - 0.5, 2.76), (x - ASIDE, 2.76), (x - ASIDE, four)]),
        Line([(x - 0.5, four), (x - 0.5, 5.52)], DARK, 1.2, "arrow"),
        Words([(x, 0.34)], "$h_1,\\ h_2$", 11),
        Words([(x - ASIDE, 0.34)], "$c_1,\\ c_2$", 11),
        Words([(x, 5.68)], "$h$", 11),
        Words([(x - 0.5, 5.68)], "$c$", 11),
        _beside(x, (one + two) / 2, "$f_1, f_2, i, o, u$"),
        _beside(x, (three + four) / 2, "$f_1, i, o, u$"),
        _beside(x, 2.97, "$h$"),
        Words([(x - ASIDE + 0.12, 2.97)], "$c$", 9, align="left"),
    ]
    return [*shapes, *_parts(x, parts), Words([(x, 0.1)], "PR-LSTM", 9)]


def _transformer(x: float, parts: Parts) -> list[Shape]:
    """Attention over all tokens, then a map of each."""
    one, two, three, four = LEVELS
    shapes = _frames(x, "all tokens\nat once", "each token\nalone")
    shapes += [
        *_up(x, (0.45, one), (one, two), (two, three), (three, four), (four, 5.52)),
        _around(x, [(x, 0.72), (x - ASIDE, 0.72), (x - ASIDE, two)]),
        _around(x, [(x, 2.97), (x - ASIDE, 2.97), (x - ASIDE, four)]),
        Words([(x, 0.34)], "$x_1,\\ \\ldots,\\ x_T$", 11),
        Words([(x, 5.68)], "$y_1,\\ \\ldots,\\ y_T$", 11),
    ]
    return [*shapes, *_parts(x, parts), Words([(x, 0.1)], "Transformer encoder", 9)]


def _frames(x: float, below: str, above: str) -> list[Shape]:
    """What two parts do together."""
    shapes: list[Shape] = []
    for words, low, high in ((below, LEVELS[0], LEVELS[1]), (above, LEVELS[2], LEVELS[3])):
        left, right, top = x - ASIDE - 0.2, x + WIDE / 2 + 0.25, high + 0.6
        shapes.append(Box([(left, low - 0.33), (right, top)], *FRAME, line="dashed"))
        shapes.append(Words([(right - 0.08, top - 0.19)], words, 7.5, GREY, "right"))
    return shapes


def _parts(x: float, parts: Parts) -> list[Shape]:
    return [
        Box([(x - WIDE / 2, y - HIGH / 2), (x + WIDE / 2, y + HIGH / 2)], *colours, words)
        for y, (words, colours) in zip(LEVELS, parts, strict=True)
    ]


def _up(x: float, *ways: tuple[float, float]) -> list[Shape]:
    """Arrows from part to part; they end where a part begins, the last one in the open."""
    *inner, (start, stop) = ways
    inside = [Line([(x, low), (x, high - HIGH / 2)], DARK, 1.2, "arrow") for low, high in inner]
    return [*inside, Line([(x, start), (x, stop)], DARK, 1.2, "arrow")]


def _around(x: float, points: Sequence[Point]) -> Line:
    """A way past a part, into the left side of the next one."""
    return Line([*points, (x - WIDE / 2, points[-1][1])], DARK, 1.2, "arrow")


def _beside(x: float, y: float, words: str) -> Words:
    return Words([(x + 0.08, y)], words, 9, align="left")
