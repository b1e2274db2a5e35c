"""Times of other implementations, to stand beside ours where they were measured alike."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from prlstm.files import Row
from prlstm.report.chart import Chart, Curve
from prlstm.report.scaling import memory_panel, time_panel


@cache
def reference() -> Mapping[str, Any]:
    """What was measured, where and how, and the curves."""
    contents: dict[str, Any] = json.loads(Path(__file__).with_name("reference.json").read_text())
    return contents


def is_alike(row: Row) -> bool:
    """Whether a row of Figure 4 was measured on the same device, with the same words and sizes."""
    theirs = reference()
    same = all(row[name] == theirs[name] for name in ("task", "batch"))
    width = row["hidden_size"] in (None, theirs["hidden_size"])
    return bool(same and width and row["made_with"]["device"] == theirs["device"])


def with_reference(chart: Chart) -> Chart:
    """A chart of time and memory with the curves of the others behind ours."""
    # not every system tells of memory
    panels = [
        replace(panel, curves=[*panel.curves, *_curves(name)])
        for panel, name in zip(chart.panels, ("ms", "gb"), strict=False)
    ]
    return replace(chart, panels=panels)


def reference_chart() -> Chart:
    """The curves of the others alone."""
    them = reference()
    title = (
        f"{them['device']}, others\n{them['task']}, {them['batch']:,} words at once, "
        f"hidden size {them['hidden_size']}"
    )
    return Chart(title, [time_panel(_curves("ms"), {}), memory_panel(_curves("gb"))], columns=2)


def _curves(name: str) -> list[Curve]:
    return [
        Curve(one["label"], [int(length) for length in one[name]], list(one[name].values()),
              one["end"])
        for one in reference()["curves"]
        if one[name]
    ]  # fmt: skip
