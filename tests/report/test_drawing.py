"""Figure 1: every node and edge of the plan is drawn, and nothing covers anything."""

import csv
import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from prlstm.cli.reproduce.figure1 import figure1
from prlstm.report.blocks import EMBEDDING, MERGE, blocks_scene
from prlstm.report.drawing import draw_tree, tree_scene, write_figure
from prlstm.report.scene import Box, Line, Scene, Words, as_figure, as_tikz
from prlstm.tree import Plan
from tests.report.latex import ENGINE, assert_compiles


def invoke(*arguments: str | Path, code: int = 0) -> str:
    app = typer.Typer()
    app.command()(figure1)
    done = CliRunner().invoke(app, [str(one) for one in arguments], env={"TERM": "dumb"})
    assert done.exit_code == code, done.output
    return done.output


def boxes(scene: Scene, fill: str) -> list[Box]:
    return [one for one in scene.shapes if isinstance(one, Box) and one.fill == fill]


@pytest.mark.parametrize("length", [1, 2, 7, 8, 13, 64])
@pytest.mark.parametrize("last", [False, True])
def test_every_node_and_edge_is_drawn(length: int, last: bool) -> None:
    plan = Plan(length, start=length - 1 if last else 0)
    scene = tree_scene(plan)
    # one more of each is in the legend
    assert len(boxes(scene, EMBEDDING[0])) == length + 1
    assert len(boxes(scene, MERGE[0])) == plan.merges + 1
    slanted = [
        one
        for one in scene.shapes
        if isinstance(one, Line) and one.points[0][0] != one.points[-1][0]
    ]
    assert len(slanted) == plan.merges
    said = [one.words for one in scene.shapes if isinstance(one, Words)]
    assert [words for words in said if words.startswith("$h")] == [
        f"$h_{{{n}}}$" for n in range(plan.start + 1, length + 1)
    ]


@pytest.mark.parametrize(
    "scene", [tree_scene(Plan(1)), tree_scene(Plan(13)), tree_scene(Plan(64)), blocks_scene()]
)
def test_nothing_is_cut_off_or_covered(scene: Scene) -> None:
    for shape in scene.shapes:
        for x, y in shape.points:
            assert 0 <= x <= scene.width
            assert 0 <= y <= scene.height
    filled = [one for one in scene.shapes if isinstance(one, Box) and one.line == "solid"]
    for number, one in enumerate(filled):
        for other in filled[:number]:
            apart = any(
                one.points[0][axis] >= other.points[1][axis]
                or other.points[0][axis] >= one.points[1][axis]
                for axis in (0, 1)
            )
            assert apart, (one, other)


def test_no_edge_passes_through_a_node() -> None:
    scene = tree_scene(Plan(32))
    nodes = boxes(scene, MERGE[0]) + boxes(scene, EMBEDDING[0])
    for line in scene.shapes:
        if not isinstance(line, Line) or line.points[0][0] == line.points[-1][0]:
            continue
        (x0, y0), (x1, y1) = line.points
        for (left, low), (right, high) in (one.points for one in nodes):
            middle = (left + right) / 2
            # its own two ends aside, an edge is past the row of a node when it is in its column
            if x0 < middle < x1 - 1e-9 and middle != x0:
                y = y0 + (y1 - y0) * (middle - x0) / (x1 - x0)
                assert not low < y < high or right <= x0 or left >= x1


def test_words_on_the_picture_are_those_of_the_scene() -> None:
    scene = tree_scene(Plan(5))
    drawn = [text.get_text() for text in as_figure(scene).axes[0].texts]
    for one in scene.shapes:
        if isinstance(one, Words):
            assert one.words in drawn
    assert draw_tree(Plan(5)).get_size_inches().tolist() == [scene.width, scene.height]


def test_tikz_escapes_words_but_not_mathematics() -> None:
    scene = Scene(1, 1, [Words([(0, 0)], "a & b_$x_{1}$", colour="#0072b2")])
    text = as_tikz(scene)
    assert r"{a \& b\_$x_{1}$}" in text
    assert r"\definecolor{scene0}{HTML}{0072B2}" in text


def test_files(tmp_path: Path) -> None:
    text = invoke("13", "--out", tmp_path / "new")
    assert "T = 13: 19 merges in 6 steps, 5 deep" in text
    paths = [Path(line) for line in text.partition("Written:")[2].split()]
    assert [path.name for path in paths] == [
        f"figure1.{ending}" for ending in ("jsonl", "csv", "tex", "svg", "png")
    ]
    rows = [json.loads(line) for line in paths[0].read_text().splitlines()]
    assert len(rows) == 13 + 19
    made = {row["node"]: (row["first"], row["last"]) for row in rows}
    for row in rows[13:]:
        assert (made[row["left"]][0], made[row["right"]][1]) == (row["first"], row["last"])
    with paths[1].open() as file:
        assert [int(row["last"]) for row in csv.DictReader(file)] == [row["last"] for row in rows]
    before = [path.read_bytes() for path in paths]
    assert [
        path.read_bytes() for path in write_figure(Plan(13), tmp_path / "new/figure1")
    ] == before


@pytest.mark.parametrize(
    ("length", "code", "says"),
    [
        (0, 1, "length=0: a tree needs at least one leaf"),
        (65, 1, "length=65: expected at most 64"),
        ("eight", 2, "LENGTH"),
    ],
)
def test_wrong_use(tmp_path: Path, length: int | str, code: int, says: str) -> None:
    assert says in invoke(str(length), "--out", tmp_path / "new", code=code)
    assert not list(tmp_path.iterdir())


def test_too_wide_a_tree() -> None:
    with pytest.raises(ValueError, match="length=65: expected at most 64"):
        draw_tree(Plan(65))


@pytest.mark.slow
@pytest.mark.skipif(ENGINE is None, reason="no pdflatex here")
def test_latex_compiles(tmp_path: Path) -> None:
    (source,) = [one for one in write_figure(Plan(8), tmp_path / "figure") if one.suffix == ".tex"]
    assert_compiles(source)
