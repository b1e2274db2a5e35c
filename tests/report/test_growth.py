"""Table 1 and its pictures, from rows made by hand."""

import csv
import io
import math
from pathlib import Path

import pytest

from prlstm.files import Row
from prlstm.report.chart import as_latex as chart_latex
from prlstm.report.chart import draw
from prlstm.report.growth import Machine, as_csv, as_latex, fit, machines, points, table
from prlstm.report.growth_charts import gradients_chart, paths_chart, times_chart
from prlstm.tree.counts import counts, over_distance
from tests.report.latex import ENGINE, assert_compiles

MADE = {"device": "a processor", "threads": 2, "cuda": None}


def timed(model: str, length: int, ms: float | None, **more: object) -> Row:
    usual = {"model": model, "length": length, "ms": ms, "hidden_size": 4, "made_with": MADE}
    return usual | more


def graded(model: str, norms: list[float], **more: object) -> Row:
    usual = {"model": model, "run": None, "seed": 0, "hidden_size": 4, "length": len(norms)}
    return usual | {"norms": norms} | more


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
def test_a_power_is_fitted_exactly(exponent: float) -> None:
    measured = [(2**k, 3.0 * 2 ** (k * exponent)) for k in range(7)]
    # what short sequences cost besides says nothing of the growth
    measured[:3] = [(n, 1000.0) for n, _ in measured[:3]]
    found = fit(measured)
    assert found is not None
    assert found.exponent == pytest.approx(exponent, abs=1e-6)
    assert (found.first, found.last, found.points) == (8, 64, 4)


def test_one_point_has_no_slope() -> None:
    assert fit([]) is None
    assert fit([(4, 1.0)]) is None
    assert fit([(2, 1.0), (4, 1.0)]) is None


def test_points_are_those_of_one_machine_without_failures() -> None:
    other = MADE | {"device": "another"}
    rows = [
        timed("lstm", 8, 2.0), timed("lstm", 4, 1.0), timed("lstm", 16, None),
        timed("lstm", 4, 9.0, made_with=other), timed("lstm", 4, 9.0, hidden_size=5),
        timed("pr_lstm_all", 4, 9.0), timed("lstm", 8, 3.0),
    ]  # fmt: skip
    assert points(rows, Machine("a processor", 2, 4), "lstm") == [(4, 1.0), (8, 3.0)]
    assert len(machines(rows)) == 3


def test_the_table() -> None:
    gpu = {"device": "a GPU & co", "threads": 7, "cuda": "13.0"}
    rows = [timed("lstm", 2**k, 2.0**k) for k in range(4)]
    rows += [timed("lstm", 2**k, 5.0, made_with=gpu) for k in range(4)]
    places = machines(rows)
    lines = table(counts(13), rows)
    assert [(line.work, line.depth, line.path_most) for line in lines] == [
        (13, 13, 12), (19, 5, 5), (12, 5, 5), (169, 1, 1),
    ]  # fmt: skip
    distances = [j - i for j in range(13) for i in range(j + 1)]
    assert lines[0].path_mean == pytest.approx(sum(distances) / len(distances))
    found = list(csv.DictReader(io.StringIO(as_csv(lines, places))))
    assert len(found) == 8
    exponents = {row["device"]: float(row["exponent"]) for row in found if row["exponent"]}
    assert exponents == {"a processor": 1.0, "a GPU & co": 0.0}
    text = as_latex(lines, places)
    assert r"RNN (LSTM) & $T$ & 13 & 13 & 4.0 & 12 & 0.00 & 1.00 \\[2pt]" in text
    assert r"$\log T + \frac{T}{p}$ & 19 & 5" in text
    assert all(line.isascii() for line in text.splitlines())
    # without a time there are counts
    assert r"& 13 & 13 & 4.0 & 12 \\" in as_latex(table(counts(13), []), [])


def test_what_the_paths_show() -> None:
    chart = paths_chart([counts(n) for n in (8, 1, 4)], 16, over_distance(16, (4, 1, 2)))
    work, depth, reach, apart = chart.panels
    assert [list(curve.y) for curve in work.curves] == [[4, 8], [4, 11], [3, 7], [16, 64]]
    assert [list(curve.y) for curve in depth.curves] == [[4, 8], [2, 4], [2, 3], [1, 1]]
    for panel in (reach, apart):
        assert [list(curve.x) for curve in panel.curves[1:]] == [[1, 2, 4]] * 3
    assert reach.curves[-1].y[0] == 4
    assert apart.curves[-1].y[0] == 5
    draw(chart)
    assert chart_latex(chart).startswith("% needs")
    # an RNN's path is drawn as far as it flattens nothing
    far = paths_chart([counts(8)], 16, over_distance(16, (1, 2, 4, 8, 15))).panels[-1]
    highest = max(far.curves[-1].y)
    assert max(far.curves[0].x) <= highest < max(far.curves[1].x)


def test_a_panel_for_each_machine() -> None:
    other = MADE | {"device": "another"}
    rows = [timed("lstm", 4, 1.0), timed("lstm", 4, 1.0, made_with=other)]
    chart = times_chart(rows)
    assert [panel.title for panel in chart.panels] == [
        "a processor, threads: 2, hidden size 4", "another, threads: 2, hidden size 4",
    ]  # fmt: skip
    draw(chart)


def test_seeds_are_one_curve() -> None:
    rows = [
        graded("lstm", [3.0, 1.0]), graded("lstm", [4.0, 1.0], seed=1),
        graded("pr_lstm", [1.0, 1.0]), graded("pr_lstm", [1.0, 1.0, 1.0]),
        graded("lstm", [2.0, 2.0], run="learned", weights="ab"),
    ]  # fmt: skip
    del rows[-1]["hidden_size"]
    chart = gradients_chart(rows)
    assert [panel.title for panel in chart.panels] == [
        "T = 2, fresh, hidden size 4", "T = 3, fresh, hidden size 4", "T = 2, trained:\nlearned",
        "The tree",
    ]  # fmt: skip
    ours, theirs = chart.panels[0].curves
    assert (ours.label, theirs.label) == ("PR-LSTM", "LSTM")
    assert list(theirs.y) == [pytest.approx(math.sqrt(12.5)), 1.0]
    assert [list(curve.y) for curve in chart.panels[-1].curves] == [[1, 1], [1, 2, 2]]
    draw(chart)


@pytest.mark.slow
@pytest.mark.skipif(ENGINE is None, reason="no pdflatex here")
def test_latex_compiles(tmp_path: Path) -> None:
    rows = [timed("lstm", 2**k, 2.0**k, made_with=MADE | {"device": "a & b_c"}) for k in range(4)]
    made = {
        "table": as_latex(table(counts(13), rows), machines(rows)),
        "paths": chart_latex(paths_chart([counts(n) for n in (8, 4)], 16, over_distance(16, (1,)))),
        "times": chart_latex(times_chart(rows)),
        "gradients": chart_latex(gradients_chart([graded("lstm", [2.0, 1.0], run="a_b")])),
    }
    for name, text in made.items():
        source = tmp_path / f"{name}.tex"
        source.write_text(text)
        assert_compiles(source)
