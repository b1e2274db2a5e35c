"""Figures of runs: what was learned, and how far it carries."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from prlstm.files import write_whole

# told apart by people who do not see all colours, and in print
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
STYLES = ("-", "--", "-.", ":")
GREY = "#767676"


@dataclass(frozen=True)
class Curve:
    """What is drawn of one run: rows as they are on disk, and the accuracy at each length."""

    label: str
    title: str
    metrics: Sequence[dict[str, Any]]
    validations: Sequence[dict[str, Any]]
    lengths: Sequence[int]
    accuracy: Sequence[float]
    longest: int
    floor: float


def draw_runs(curves: Sequence[Curve]) -> Figure:
    """Loss over steps, accuracy over steps, accuracy over length."""
    figure = Figure(figsize=(13, 4.2), layout="constrained")
    loss, accuracy, length = figure.subplots(1, 3)
    for number, curve in enumerate(curves):
        colour = COLOURS[number % len(COLOURS)]
        # curves that cover each other are still seen
        style = STYLES[number % len(STYLES)]
        steps = [row["step"] for row in curve.metrics]
        losses, shares = ([row[name] for row in curve.metrics] for name in ("loss", "accuracy"))
        loss.plot(steps, losses, style, color=colour, label=curve.label)
        accuracy.plot(steps, shares, style, color=colour)
        accuracy.plot(
            [row["step"] for row in curve.validations],
            [row["accuracy"] for row in curve.validations],
            "o",
            color=colour,
            markersize=4,
        )
        length.plot(curve.lengths, curve.accuracy, style, color=colour, linewidth=1.2)
    _label(loss, "step", "loss", "Loss in training")
    _label(accuracy, "step", "accuracy", "Accuracy in training (dots: validation)")
    _label(length, "length of the word (tokens)", "accuracy", "Accuracy over length")
    loss.set_ylim(bottom=0)
    for axes in (accuracy, length):
        axes.set_ylim(-0.03, 1.03)
    _shade(length, curves)
    titles = dict.fromkeys(curve.title for curve in curves)
    figure.suptitle("; ".join(titles))
    if len(curves) > 1:
        columns = max(1, min(len(curves), 150 // (8 + max(len(c.label) for c in curves))))
        figure.legend(loc="outside lower center", ncols=columns, frameon=False, fontsize="small")
    return figure


def save_figure(figure: Figure, path: Path) -> list[Path]:
    """Write `path` as SVG and as PNG, whichever it is named; equal figures are equal files."""
    written = []
    path = path.with_suffix("") if path.suffix in (".svg", ".png") else path
    for ending in ("svg", "png"):
        contents = io.BytesIO()
        metadata = {"Date": None} if ending == "svg" else {"Software": None}
        # names inside an SVG are drawn at random unless they are salted
        with rc_context({"svg.hashsalt": "prlstm"}):
            figure.savefig(contents, format=ending, dpi=150, metadata=metadata)
        whole = path.with_name(f"{path.name}.{ending}")
        write_whole(whole, contents.getvalue())
        written.append(whole)
    return written


def _label(axes: Axes, x: str, y: str, title: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize="medium")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _shade(axes: Axes, curves: Sequence[Curve]) -> None:
    """The lengths of training, and what guessing reaches."""
    longest = max(curve.longest for curve in curves)
    axes.axvspan(1, longest, color=GREY, alpha=0.25, linewidth=0)
    most = max([longest, *(n for curve in curves for n in curve.lengths[-1:])])
    axes.set_xlim(1, most)
    axes.annotate(
        f"trained\non 1 to {longest}", (longest, 0.02), (4, 0), textcoords="offset points",
        fontsize="small", color=GREY,
    )  # fmt: skip
    for floor in {curve.floor for curve in curves}:
        axes.axhline(floor, color=GREY, linestyle=":", linewidth=1)
        axes.annotate(
            "guessing", (most, floor), (0, 3), textcoords="offset points", ha="right",
            fontsize="small", color=GREY,
        )  # fmt: skip
    if not any(curve.lengths for curve in curves):
        axes.text(0.5, 0.5, "not scored yet", transform=axes.transAxes, ha="center", color=GREY)
