"""Charts as CSV, LaTeX and pictures."""

import csv
from pathlib import Path

import pytest

from prlstm.files import Row
from prlstm.report.chart import Chart, Curve, Panel, as_latex, draw, write_chart
from prlstm.report.columns import FIGURE3
from prlstm.report.curves import loss_over_time
from prlstm.report.latex import MOST_POINTS, escape
from tests.report.latex import ENGINE, assert_compiles
from tests.report.made import curve_row

CHART = Chart(
    "50 % of $ & _",
    [
        Panel(
            "one_panel", "x #", "y in %",
            [Curve("a & b", [1, 2, 3], [4, 5, 6], "time"), Curve("c_d", [1], [2], "memory")],
            log_x=True, lines={"limit": 5.0},
        ),
        Panel("empty", "x", "y", []),
        Panel("last", "x", "y", [Curve("c_d", list(range(1000)), list(range(1000)), "done")]),
    ],
    columns=2,
)  # fmt: skip


def test_all_points_are_in_the_csv(tmp_path: Path) -> None:
    paths = write_chart(CHART, tmp_path / "new" / "chart")
    assert [path.suffix for path in paths] == [".csv", ".tex", ".svg", ".png"]
    lines = list(csv.DictReader(paths[0].read_text().splitlines()))
    assert len(lines) == 3 + 1 + 1000
    assert [line["end"] for line in lines[:4]] == ["", "", "time", "memory"]
    assert lines[2] == {"panel": "one_panel", "curve": "a & b", "x": "3", "y": "6", "end": "time"}


def test_curves_of_one_label_look_the_same() -> None:
    figure = draw(CHART)
    first, _, last = figure.axes
    colours = [
        axes.lines[number].get_color() for axes, number in ((first, 2), (last, 0), (first, 0))
    ]
    assert colours[0] == colours[1] != colours[2]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "a & b", "c_d", "stopped: too slow", "stopped: out of memory",
    ]  # fmt: skip


def test_latex_is_escaped_and_thinned() -> None:
    text = as_latex(CHART)
    assert r"a \& b" in text
    assert r"one\_panel" in text
    longest = max(text.splitlines(), key=len)
    assert longest.count("(") <= MOST_POINTS + 1
    assert "(999,999)" in longest


def test_escape() -> None:
    assert escape(r"a\b{c}^~") == r"a\textbackslash{}b\{c\}\textasciicircum{}\textasciitilde{}"


def test_loss_over_time() -> None:
    rows = [
        curve_row("even_pairs", "lstm"),
        curve_row("even_pairs", "lstm") | {"seconds": [90], "loss": [0.1], "step": [900]},
        curve_row("even_pairs", "pr_lstm", hidden_size=4),
        curve_row("parity_check", "pr_lstm", precision="bfloat16"),
    ]
    chart = loss_over_time(rows, FIGURE3, ["even_pairs", "parity_check"], "A title")
    first, second = chart.panels
    known = [(curve.label, len(curve.x), curve.x[-1]) for curve in first.curves]
    # precisions are told where there are several
    assert known == [("LSTM (float32)", 6, 90)]
    assert [curve.label for curve in second.curves] == ["PR-LSTM (bfloat16)"]
    alone = loss_over_time(rows[:2], FIGURE3, ["even_pairs"], "A title").panels[0]
    assert [curve.label for curve in alone.curves] == ["LSTM"]
    assert second.title == "Parity Check"
    assert all(curve.end == "done" for panel in chart.panels for curve in panel.curves)


def test_a_run_that_began_anew_is_another_curve() -> None:
    first = curve_row("even_pairs", "lstm")
    # on from step 500, after 10 seconds: in the same run, in one begun anew, on another machine
    more = first | {"step": [600], "seconds": [12.0], "loss": [0.5], "accuracy": [0.5]}
    anew = more | {"seconds": [9.0]}
    moved = more | {"made_with": first["made_with"] | {"device": "another"}}

    def lengths(*rows: Row) -> list[int]:
        (panel,) = loss_over_time(rows, FIGURE3, ["even_pairs"], "A title").panels
        return [len(curve.x) for curve in panel.curves]

    assert lengths(first, more) == [6]
    assert lengths(first, anew) == lengths(first, moved) == [5, 1]


@pytest.mark.slow
@pytest.mark.skipif(ENGINE is None, reason="no pdflatex here")
def test_latex_compiles(tmp_path: Path) -> None:
    assert_compiles(write_chart(CHART, tmp_path / "chart")[1])
