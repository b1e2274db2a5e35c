"""Accuracy over length as a chart."""

from pathlib import Path

import pytest

from prlstm.report.chart import as_latex, draw, write_chart
from prlstm.report.columns import TABLE2
from prlstm.report.lengths import TOGETHER, accuracy_over_length
from prlstm.report.scores import score_cells
from tests.report.latex import ENGINE, assert_compiles
from tests.report.made import score_row

NAMES = ["parity_check", "even_pairs", "bucket_sort"]


def chart_of(*rows):
    return accuracy_over_length(score_cells(rows, TABLE2, NAMES, "table2"), TABLE2, NAMES, "title")


def falling(row):
    """All right at length 41, the less right the longer, none at 500."""
    right = [[round(64 * (1 - k / 459))] * 2 for k in range(460)]
    return row | {"correct": right}


def test_a_panel_for_each_task_that_has_a_score() -> None:
    chart = chart_of(score_row("bucket_sort", "lstm"), score_row("parity_check", "pr_lstm"))
    assert [panel.title for panel in chart.panels] == ["Parity Check", "Bucket Sort"]
    assert chart.panels[1].lines == {"guessing": pytest.approx(0.901, abs=1e-3)}
    assert chart.panels[0].bands == {"trained on 1 to 40": (1, 40)}
    assert chart_of().panels == []


def test_the_best_seed_is_drawn_by_length() -> None:
    worse = score_row(seed=1, score=0.2)
    chart = chart_of(worse, falling(score_row(score=0.5)))
    (curve,) = chart.panels[0].curves
    assert curve.label == "PR-LSTM"
    assert len(curve.x) == len(curve.y) == 460 / TOGETHER
    assert (curve.x[0], curve.x[-1]) == (45.5, 495.5)
    for x, y in zip(curve.x, curve.y, strict=True):
        assert y == pytest.approx(1 - (x - 41) / 459, abs=1 / 128)


def test_bands_are_drawn_and_shares_are_whole() -> None:
    chart = chart_of(score_row())
    (axes,) = draw(chart).axes
    assert axes.get_ylim() == (-0.03, 1.03)
    assert "trained on 1 to 40" in {text.get_text() for text in axes.texts}
    assert "ymin=-0.03, ymax=1.03" in as_latex(chart)
    assert r"\fill[gray!25] ({axis cs:1,0}" in as_latex(chart)


@pytest.mark.slow
@pytest.mark.skipif(ENGINE is None, reason="no pdflatex here")
def test_latex_compiles(tmp_path: Path) -> None:
    assert_compiles(write_chart(chart_of(score_row()), tmp_path / "chart")[1])
