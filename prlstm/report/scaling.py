"""Time and peak memory over the length of the words: a chart for each device, and its numbers."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from prlstm.files import Row
from prlstm.report.chart import Chart, Curve, End, Panel

# the points of a curve, going up in length
Points = Mapping[str, Sequence[Row]]


def by_device(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows by the name of the device that they were measured on, as they come."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["made_with"]["device"], []).append(row)
    return found


def points_of(rows: Iterable[Row], labels: Sequence[str]) -> dict[str, list[Row]]:
    """The curves of a device by label, in the order of `labels`, each up to its end.

    Of several rows of a point the one that rests on most batches counts, the last of equals.
    """
    found: dict[str, dict[int, Row]] = {label: {} for label in labels}
    for row in rows:
        curve = found.setdefault(row["label"], {})
        before = curve.get(row["length"])
        if before is None or row["batches"] >= before["batches"]:
            curve[row["length"]] = row
    return {label: _up_to_the_end(curve) for label, curve in found.items() if curve}


def _up_to_the_end(curve: Mapping[int, Row]) -> list[Row]:
    points: list[Row] = []
    for length in sorted(curve):
        points.append(curve[length])
        if curve[length]["end"]:
            break
    return points


def chart_of(points: Points) -> Chart:
    """Time and memory beside each other; a mark at the last point tells why it is the last."""
    rows = [row for curve in points.values() for row in curve]
    first = rows[0]
    limit = {f"{first['stop_ms']:g} ms": first["stop_ms"]}
    times, peaks = _curves(points, "ms_mean", 1), _curves(points, "peak_bytes", 1e-9)
    panels = [time_panel(times, limit)]
    # not every system tells
    if any(curve.x for curve in peaks):
        panels.append(memory_panel(peaks))
    return Chart(f"{first['made_with']['device']}\n{_told(rows)}", panels, columns=2)


def time_panel(curves: list[Curve], lines: Mapping[str, float]) -> Panel:
    """Milliseconds."""
    return _panel("Time", "time of a batch (ms)", curves, lines)


def memory_panel(curves: list[Curve]) -> Panel:
    """Gigabytes."""
    return _panel("Peak memory", "peak memory (GB)", curves, {})


def _panel(title: str, y: str, curves: list[Curve], lines: Mapping[str, float]) -> Panel:
    # without a number there is nothing to take a logarithm of
    log = any(curve.x for curve in curves)
    return Panel(
        title, "length of the words (tokens)", y, curves, log_x=log, log_y=log, lines=lines
    )


def _curves(points: Points, name: str, unit: float) -> list[Curve]:
    """A curve without a point is there all the same: its label tells that it was tried."""
    drawn = []
    for label, curve in points.items():
        # nor of a zero, which is a memory too small to be counted
        known = [row for row in curve if row[name]]
        end = cast(End, curve[-1]["end"] or "")
        values = [unit * row[name] for row in known]
        drawn.append(Curve(label, [row["length"] for row in known], values, end))
    return drawn


def _told(rows: Sequence[Row]) -> str:
    """What all points have in common, and on how many batches they rest."""
    counts = sorted({row["batches"] for row in rows if row["batches"]})
    batches = " to ".join(f"{count:,}" for count in dict.fromkeys([*counts[:1], *counts[-1:]]))
    widths = {row["hidden_size"] for row in rows} - {None}
    hidden = "".join(f", hidden size {width}" for width in sorted(widths))
    mean = f", mean of {batches} batches" if counts else ""
    return f"{rows[0]['task']}, {rows[0]['batch']:,} words at once{hidden}{mean}"


def slug(device: str) -> str:
    """The name of a device as a part of the name of a file."""
    return re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")


def shown_ms(row: Row | None) -> str:
    """A point in a table on a terminal."""
    if row is None:
        return ""
    if row["ms_mean"] is None:
        return str(row["end"])
    ms = row["ms_mean"]
    text = f"{ms:.3f}" if ms < 1 else f"{ms:.2f}" if ms < 10 else f"{ms:,.1f}"
    return f"{text} *" if row["end"] == "time" else text
