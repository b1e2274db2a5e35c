"""Figure 1: the tree of a sequence, drawn; its nodes and edges as rows."""

import csv
import io
import json
from pathlib import Path

from matplotlib.figure import Figure

from prlstm.files import write_whole
from prlstm.report.blocks import EMBEDDING, MERGE, blocks_scene
from prlstm.report.figures import GREY, save_figure
from prlstm.report.scene import Box, Line, Point, Scene, Shape, Words, as_figure, as_tikz
from prlstm.tree import Plan
from prlstm.tree.paths import Vertex, vertices

# more columns than this are no picture any more
MOST_DRAWN = 64
WIRE, EDGE = "#a8a8a8", "#4a4a4a"
# inches: the margin of the labels, from row to row, below the leaves
MARGIN, ROW, BELOW, TOP = 0.75, 0.62, 1.2, 0.55
# a column is as wide as there is room for, within limits
NARROWEST, WIDEST, ROOM = 0.3, 0.62, 10.0
# of the whole picture, which holds what is said below it
NARROW = 2.4
HEADER = ("node", "phase", "level", "first", "last", "left", "right")


def draw_tree(plan: Plan) -> Figure:
    """The tree as a picture: a column for each leaf, a row for each step, time going up."""
    return as_figure(tree_scene(plan))


def tree_scene(plan: Plan) -> Scene:
    """Tokens below, then leaves, merges, and above them the states that are read."""
    if plan.length > MOST_DRAWN:
        raise ValueError(f"length={plan.length}: expected at most {MOST_DRAWN} leaves to draw")
    pitch = min(WIDEST, max(NARROWEST, ROOM / plan.length))
    small = 9 if pitch > 0.4 else 7
    made, rows = vertices(plan), _rows(plan)
    width = max(NARROW, MARGIN + pitch * plan.length + 0.2)
    top = BELOW + ROW * len(plan.steps) + TOP

    def at(vertex: Vertex) -> Point:
        return MARGIN + pitch * (vertex.last - 0.5), BELOW + ROW * rows[vertex.phase, vertex.level]

    wires: list[Shape] = []
    edges: list[Shape] = []
    nodes: list[Shape] = []
    # how far up a column is looked at
    ends = dict.fromkeys(range(1, plan.length + 1), BELOW)
    for one in made:
        x, y = at(one)
        nodes.append(_node(one, x, y, pitch))
        ends[one.last] = max(ends[one.last], y)
        if one.left is not None:
            start, _ = at(made[one.left])
            # within one row's height nothing stands in the way
            edges.append(Line([(start, y - ROW), (x, y)], EDGE, 1.3))
            ends[made[one.left].last] = max(ends[made[one.left].last], y - ROW)
    for leaf in range(1, plan.length + 1):
        x = MARGIN + pitch * (leaf - 0.5)
        nodes.append(Words([(x, BELOW - 0.52)], f"$x_{{{leaf}}}$", small + 1))
        wires.append(Line([(x, BELOW - 0.4), (x, BELOW - 0.14)], EDGE, 1, "arrow"))
        if leaf > plan.start:
            wires.append(Line([(x, BELOW), (x, top - 0.17)], WIRE, 1.3, "arrow"))
            nodes.append(Words([(x, top - 0.04)], f"$h_{{{leaf}}}$", small + 1))
        else:
            wires.append(Line([(x, BELOW), (x, ends[leaf])], WIRE, 1.3))
    for (phase, level), row in rows.items():
        said = "leaf" if phase == "leaf" else f"{phase} {level}"
        nodes.append(Words([(0.1, BELOW + ROW * row)], said, 8, GREY, "left"))
    return Scene(width, top + 0.15, [*wires, *edges, *nodes, *_legend()])


def _rows(plan: Plan) -> dict[tuple[str, int], int]:
    """In which row the states of a phase and level stand."""
    steps = [(step.phase, step.level) for step in plan.steps]
    return {("leaf", 0): 0} | {step: row for row, step in enumerate(steps, 1)}


def _node(one: Vertex, x: float, y: float, pitch: float) -> Box:
    half, high = min(0.2, 0.36 * pitch), 0.13
    fill, edge = EMBEDDING if one.phase == "leaf" else MERGE
    return Box([(x - half, y - high), (x + half, y + high)], fill, edge)


def _legend() -> list[Shape]:
    shapes: list[Shape] = []
    for x, (fill, edge), words in ((0.1, EMBEDDING, "embedding"), (1.3, MERGE, "LSTM block")):
        shapes.append(Box([(x, 0.13), (x + 0.22, 0.31)], fill, edge))
        shapes.append(Words([(x + 0.3, 0.22)], words, 8, align="left"))
    return shapes


def write_figure(plan: Plan, stem: Path) -> list[Path]:
    """The tree beside the blocks: jsonl and csv of its nodes, tex, svg and png."""
    scene, rows = _overview(plan), _node_rows(plan)
    stem.parent.mkdir(parents=True, exist_ok=True)
    table = io.StringIO()
    writer = csv.DictWriter(table, HEADER, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    made = {"jsonl": lines, "csv": table.getvalue(), "tex": as_tikz(scene)}
    paths = [stem.with_name(f"{stem.name}.{ending}") for ending in made]
    for path, text in zip(paths, made.values(), strict=True):
        write_whole(path, text.encode())
    return [*paths, *save_figure(as_figure(scene), stem)]


def _node_rows(plan: Plan) -> list[dict[str, object]]:
    """A row for each node; its edges come from `left` and `right`, which a leaf has not."""
    return [{"node": number} | vars(one) for number, one in enumerate(vertices(plan))]


def _overview(plan: Plan) -> Scene:
    """Both parts of the figure on one sheet."""
    tree, blocks = tree_scene(plan), blocks_scene()
    title, gap = 0.45, 0.5
    height = max(tree.height, blocks.height)
    words = f"The tree of {plan.length} token{'s' if plan.length > 1 else ''}"
    shapes = [
        *tree.moved(0, height - tree.height),
        *blocks.moved(tree.width + gap, height - blocks.height),
        Words([(0.1, height + title / 2)], words, 11, align="left"),
        Words([(tree.width + gap + 0.1, height + title / 2)], "Its block, and a Transformer's", 11,
              align="left"),
    ]  # fmt: skip
    return Scene(tree.width + gap + blocks.width, height + title, shapes)
