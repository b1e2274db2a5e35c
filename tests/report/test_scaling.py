"""Rows of Figure 4 as charts: which points are drawn, and how curves end."""

from pathlib import Path
from typing import Any

import pytest

from prlstm.files import Row
from prlstm.report.chart import write_chart
from prlstm.report.scaling import by_device, chart_of, points_of, shown_ms, slug

LABELS = ["PR-LSTM", "LSTM"]


def row(length: int, **more: Any) -> Row:
    usual = {
        "task": "parity_check", "label": "LSTM", "length": length, "batch": 8, "hidden_size": 4,
        "stop_ms": 50.0, "batches": 100, "ms_mean": 1.0 * length, "peak_bytes": 10**9 * length,
        "end": "", "made_with": {"device": "GPU"},
    }  # fmt: skip
    return usual | more


def nothing(length: int, end: str, **more: Any) -> Row:
    """A point that gave no number."""
    return row(length, end=end, batches=0, ms_mean=None, peak_bytes=None, **more)


def test_the_row_that_rests_on_most_batches_counts() -> None:
    rows = [row(1, batches=3, ms_mean=9.0), row(1, ms_mean=2.0), row(1, ms_mean=3.0)]
    rows.append(row(1, batches=50, ms_mean=4.0))
    assert points_of(rows, LABELS) == {"LSTM": [rows[2]]}


def test_curves_go_up_in_their_own_order_and_end_at_the_first_mark() -> None:
    rows = [row(3), row(2, end="time"), row(1), row(7, label="PR-LSTM"), row(1, label="more")]
    points = points_of(rows, LABELS)
    assert list(points) == ["PR-LSTM", "LSTM", "more"]
    assert [one["length"] for one in points["LSTM"]] == [1, 2]


@pytest.mark.parametrize(
    ("last", "end", "lengths"),
    [
        (row(3, end="time"), "time", [1, 2, 3]),
        (nothing(3, "memory"), "memory", [1, 2]),
        (nothing(3, "refused"), "refused", [1, 2]),
        (row(3), "", [1, 2, 3]),
    ],
)
def test_the_mark_stands_at_the_last_number(last: Row, end: str, lengths: list[int]) -> None:
    chart = chart_of(points_of([row(1), row(2), last], LABELS))
    assert chart.title == "GPU\nparity_check, 8 words at once, hidden size 4, mean of 100 batches"
    time, memory = chart.panels
    for panel in (time, memory):
        (curve,) = panel.curves
        assert (curve.label, curve.end, curve.x) == ("LSTM", end, lengths)
        # here milliseconds and gigabytes are as many as tokens
        assert curve.y == pytest.approx(lengths)
    assert time.lines == {"50 ms": 50.0}


def test_where_memory_is_not_known() -> None:
    rows = [row(1, peak_bytes=0), row(2, peak_bytes=None)]
    chart = chart_of(points_of(rows, LABELS))
    assert [(panel.title, panel.curves[0].x) for panel in chart.panels] == [("Time", [1, 2])]
    chart = chart_of(points_of([*rows, row(3)], LABELS))
    assert [panel.curves[0].x for panel in chart.panels] == [[1, 2, 3], [3]]


def test_a_curve_without_a_point_is_no_obstacle(tmp_path: Path) -> None:
    rows = [nothing(1, "memory"), row(1, label="PR-LSTM", hidden_size=None, batches=3)]
    for some in (rows, rows[:1]):
        written = write_chart(chart_of(points_of(some, LABELS)), tmp_path / "figure")
        assert [path.name for path in written] == [
            f"figure.{e}" for e in ("csv", "tex", "svg", "png")
        ]
    assert "Time,PR-LSTM" not in (tmp_path / "figure.csv").read_text()


def test_devices_apart() -> None:
    other = row(2, made_with={"device": "another"})
    assert by_device([row(1), other, row(3)]) == {"GPU": [row(1), row(3)], "another": [other]}
    assert slug("Intel(R) Xeon(R) CPU @ 2.0GHz") == "intel-r-xeon-r-cpu-2-0ghz"


def test_as_shown_on_a_terminal() -> None:
    given = [None, row(1, ms_mean=0.12345), row(1, ms_mean=1.2345), row(1, ms_mean=1234.5)]
    assert [shown_ms(one) for one in given] == ["", "0.123", "1.23", "1,234.5"]
    assert shown_ms(row(1, ms_mean=60.0, end="time")) == "60.0 *"
    assert shown_ms(nothing(1, "memory")) == "memory"
