"""Table 1: what is counted, and exponents fitted to what was measured, beside the formulas."""

import csv
import io
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prlstm.files import Row, write_whole
from prlstm.report.latex import escape
from prlstm.tree.counts import Counts


@dataclass(frozen=True)
class Model:
    """A line of the table: its name in rows and in print, and the paper's growth of its time."""

    name: str
    label: str
    formula: str
    latex: str


MODELS = (
    Model("lstm", "RNN (LSTM)", "T", "$T$"),
    Model("pr_lstm_all", "PR-LSTM, all states", "log T + T/p", r"$\log T + \frac{T}{p}$"),
    Model("pr_lstm_last", "PR-LSTM, last state", "log T + T/p", r"$\log T + \frac{T}{p}$"),
    Model("transformer_encoder", "Transformer", "1 + T^2/p", r"$1 + \frac{T^2}{p}$"),
)
LABELS = {model.name: model.label for model in MODELS}
# units of work: one step, one merge, one pair of tokens in each layer
UNITS = {"lstm": "steps", "transformer_encoder": "pairs"}
HEADER = (
    "model", "formula", "length", "work", "unit", "depth", "path_mean", "path_most",
    "device", "threads", "hidden_size", "exponent", "fitted_from", "fitted_to", "points",
)  # fmt: skip
NOTE = (
    "Work, depth and path are counted, in steps, merges or pairs of tokens. A path leads from a "
    "token to a state that contains it. Depth and path of the Transformer are those of one "
    "layer. An exponent e fits time ~ T^e by least squares of logarithms over the greater half "
    "of the lengths: near 0 while p is not used up, near that of the work once it is."
)
OF_PATHS = (
    "What holds of the paper's paths of O(log t), from a token to the state t tokens later: the "
    "mean over positions, not every pair. No such path has fewer than about log2 t merges; the "
    "mean has at most 3.5 + 1.5 log2 t. The worst pair lies on both sides of the highest border "
    "between blocks: already neighbours there are about log2 T merges apart, where an RNN takes "
    "one step. No path is longer than 2 log2 T. An RNN's is shorter than the mean one up to t = 6."
)


@dataclass(frozen=True, order=True)
class Machine:
    """Where times were measured, and at which size. A GPU's threads tell nothing."""

    device: str
    threads: int | None
    hidden_size: int

    @staticmethod
    def of(row: Row) -> "Machine":
        """The one of a row."""
        made_with = row["made_with"]
        threads = None if made_with["cuda"] else made_with["threads"]
        return Machine(made_with["device"], threads, row["hidden_size"])

    @property
    def said(self) -> str:
        """As a title."""
        threads = "" if self.threads is None else f", threads: {self.threads}"
        return f"{self.device}{threads}, hidden size {self.hidden_size}"


@dataclass(frozen=True)
class Fit:
    """The exponent of a time over lengths, and which these were."""

    exponent: float
    first: int
    last: int
    points: int


@dataclass(frozen=True)
class Line:
    """What is counted of a model at a length, and what is fitted on each machine."""

    model: Model
    length: int
    work: int
    depth: int
    path_mean: float
    path_most: int
    fits: Sequence[Fit | None]


def points(rows: Sequence[Row], machine: Machine, model: str) -> list[tuple[int, float]]:
    """Lengths and milliseconds in order; of a length that was measured again, the latest."""
    found = {
        row["length"]: row["ms"]
        for row in rows
        if row["model"] == model and row["ms"] is not None and Machine.of(row) == machine
    }
    return sorted(found.items())


def fit(measured: Sequence[tuple[int, float]]) -> Fit | None:
    """The slope of the logarithms over the greater half of the lengths; None where there is none.

    >>> fit([(1, 5.0), (2, 5.0), (4, 32.0), (8, 128.0)])
    Fit(exponent=2.0, first=4, last=8, points=2)
    """
    upper = measured[len(measured) // 2 :]
    if len(upper) < 2:
        return None
    xs, ys = ([math.log2(one[place]) for one in upper] for place in (0, 1))
    slope = statistics.linear_regression(xs, ys).slope
    return Fit(round(slope, 6), upper[0][0], upper[-1][0], len(upper))


def machines(rows: Sequence[Row]) -> list[Machine]:
    """All that rows were measured on."""
    return sorted(dict.fromkeys(map(Machine.of, rows)), key=lambda one: one.said)


def table(counts: Counts, rows: Sequence[Row]) -> list[Line]:
    """A line for each model."""
    n = counts.length
    every, last = counts.to_all, counts.to_last
    # the paths of an RNN are 0, 1, ..., of every length as often as there are pairs so far apart
    counted = {
        "lstm": (n, n, (n - 1) / 3, n - 1),
        "pr_lstm_all": (counts.merges, counts.depth, every.mean, every.most),
        "pr_lstm_last": (counts.merges_last, counts.depth_last, last.mean, last.most),
        "transformer_encoder": (n * n, 1, 1.0, 1),
    }
    places = machines(rows)
    return [
        Line(
            model, n, *counted[model.name],
            [fit(points(rows, place, model.name)) for place in places],
        )
        for model in MODELS
    ]  # fmt: skip


def write_table(lines: Sequence[Line], places: Sequence[Machine], stem: Path) -> list[Path]:
    """Write `stem` with the endings csv and tex."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    made = {"csv": as_csv(lines, places), "tex": as_latex(lines, places)}
    paths = [stem.with_name(f"{stem.name}.{ending}") for ending in made]
    for path, text in zip(paths, made.values(), strict=True):
        write_whole(path, text.encode())
    return paths


def as_csv(lines: Sequence[Line], places: Sequence[Machine]) -> str:
    """A line for each model and machine."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for line in lines:
        unit = UNITS.get(line.model.name, "merges")
        counted = [line.length, line.work, unit, line.depth, f"{line.path_mean:.4f}"]
        for place, found in zip(places, line.fits, strict=True):
            where = [place.device, place.threads, place.hidden_size]
            fitted = [found.exponent, found.first, found.last, found.points] if found else [""] * 4
            known = [line.model.label, line.model.formula, *counted, line.path_most]
            writer.writerow([*known, *where, *fitted])
    return text.getvalue()


def as_latex(lines: Sequence[Line], places: Sequence[Machine]) -> str:
    """The table for booktabs; what its numbers mean stands below, as a comment."""
    length = f"{lines[0].length:,}".replace(",", "{,}")
    groups = rf" & \multicolumn{{4}}{{c}}{{Counted at $T = {length}$}}"
    rules = r"\cmidrule(lr){3-6}"
    if places:
        groups += rf" & \multicolumn{{{len(places)}}}{{c}}{{Exponent of measured time}}"
        rules += rf" \cmidrule(lr){{7-{6 + len(places)}}}"
    marks = "".join(f" & ({chr(97 + number % 26)})" for number in range(len(places)))
    text = [
        r"% needs \usepackage{booktabs}",
        rf"\begin{{tabular}}{{lcrrrr{'r' * len(places)}}}",
        r"\toprule",
        rf" &{groups} \\",
        rules,
        r"Model & $O(\tau_p)$ & Work & Depth & Mean path & Longest"
        rf"{marks} \\",
        r"\midrule",
    ]
    for line in lines:
        work, depth, most = (f"{n:,}" for n in (line.work, line.depth, line.path_most))
        mean = f"{line.path_mean:,.1f}"
        fits = "".join(" & --" if one is None else f" & {one.exponent:.2f}" for one in line.fits)
        text.append(
            rf"{escape(line.model.label)} & {line.model.latex} & {work} & {depth} & {mean} & "
            rf"{most}{fits} \\[2pt]"
        )
    text += [r"\bottomrule", r"\end{tabular}"]
    text += [f"% ({chr(97 + n % 26)}) {place.said}" for n, place in enumerate(places)]
    return "\n".join([*text, f"% {NOTE}", f"% {OF_PATHS}"]) + "\n"
