"""`prlstm reproduce figure4`."""

import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from prlstm.cli.given import INTERRUPTED, named, read_device, read_numbers, told, typed
from prlstm.cli.reproduce.options import OUT, Out, say_written
from prlstm.cli.tables import duration, plain_table
from prlstm.cli.train import Device
from prlstm.environment import environment
from prlstm.experiments.scaling import Progress, Report, Request, measure_curves
from prlstm.experiments.scaling_curves import CURVES, Curve, usual_curves, usual_lengths
from prlstm.files import Row
from prlstm.report.chart import write_chart
from prlstm.report.rows import SCALING, read_results
from prlstm.report.scaling import Points, by_device, chart_of, points_of, shown_ms, slug
from prlstm.tasks.check import read_name
from prlstm.training.interrupt import terminations_as_interrupts

NAME = "figure4"
# seconds between two plain lines about one point
EVERY = 10.0


def figure4(
    curves: Annotated[
        str | None,
        typer.Option(help=f"Some of {', '.join(CURVES)}; by default all that the device can run."),
    ] = None,
    lengths: Annotated[
        str | None,
        typer.Option(help="As in 1,10,100 or 1:20; by default from 1 to 1,048,576."),
    ] = None,
    batch: Annotated[int, typer.Option(help="Words that are answered at once.")] = 1024,
    batches: Annotated[int, typer.Option(help="Batches behind each mean.")] = 100,
    seconds: Annotated[
        float | None,
        typer.Option(help="At most so long for a point, but three batches; by default no limit."),
    ] = None,
    stop_ms: Annotated[float, typer.Option(help="A curve ends above this mean.")] = 500.0,
    hidden_size: Annotated[int, typer.Option(help="Of PR-LSTM and LSTM.")] = 256,
    device: Device = "auto",
    out: Out = OUT,
) -> None:
    """Time and peak memory of an answer over the length of the words (Figure 4).

    Every model is run as a user runs it fastest, and operation by operation as the paper did. A
    curve ends where a batch takes too long or memory runs out. The same command again goes on
    where it was stopped, and measures nothing twice.
    """
    chosen = read_device(device)
    some = usual_curves(chosen) if curves is None else _read_curves(curves, chosen)
    asked = usual_lengths(chosen) if lengths is None else read_numbers(lengths, "--lengths", 1)
    with typed():
        request = Request(
            batch=batch, batches=batches, seconds=seconds, stop_ms=stop_ms, hidden_size=hidden_size
        )
    console, path = Console(), out / SCALING
    with told():
        try:
            with terminations_as_interrupts(), _display(console) as report:
                measure_curves(some, asked, request, path, chosen, report)
        except KeyboardInterrupt:
            _say(
                console, f"Interrupted. All points so far are in {path}; the same command goes on."
            )
            raise typer.Exit(INTERRUPTED) from None
        found = by_device(row for row in read_results(path) if request.is_about(row))
        labels = [curve.label for curve in CURVES.values()]
        drawn = {name: points_of(rows, labels) for name, rows in found.items()}
        written = [path]
        for name, points in drawn.items():
            stem = NAME + _suffix(request) + (f"-{slug(name)}" if len(drawn) > 1 else "")
            written += write_chart(chart_of(points), out / stem)
    here = environment(chosen)["device"]
    if here in drawn:
        _print_points(console, here, drawn[here])
    say_written(console, written)


def _suffix(request: Request) -> str:
    """What tells a trial's files from those of the paper's settings."""
    usual = Request()
    given = {name: getattr(request, name) for name in ("batch", "hidden_size", "stop_ms")}
    return "".join(f"-{n}-{v:g}" for n, v in given.items() if v != getattr(usual, n))


def _read_curves(text: str, device: torch.device) -> list[Curve]:
    """Curves by name, in their own order."""
    names = {
        named(lambda name: read_name(name, CURVES, "curve"), part.strip(), "--curves")
        for part in text.split(",")
    }
    for name in names:
        if CURVES[name].cuda_only and device.type != "cuda":
            raise typer.BadParameter(
                f"{name!r}: expected a CUDA device, got {device}", param_hint="--curves"
            )
    return [curve for name, curve in CURVES.items() if name in names]


@contextmanager
def _display(console: Console) -> Iterator[Report]:
    """A bar on a terminal, a line for each point otherwise."""
    if not console.is_terminal:
        yield _Lines(console).hear
        return
    text, said = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[said]}")
    with Bar(text, BarColumn(30), said, console=console, transient=True) as bar:
        whole = bar.add_task("starting", total=None, said="")
        clock = _Clock()

        def hear(at: Progress) -> None:
            if at.row is not None:
                bar.console.print(_point(at.row), highlight=False, markup=False)
            of = at.done + at.left + (at.row is None)
            bar.update(whole, description=_place(at), completed=at.done, total=of, said=clock(at))

        yield hear


class _Clock:
    """How many points are done, and about how long the others take."""

    def __init__(self) -> None:
        self.start = time.monotonic()

    def __call__(self, at: Progress) -> str:
        """In a few words."""
        open_points = at.left + (at.row is None)
        said = f"{at.done} of at most {at.done + open_points} points"
        if not at.done or not open_points:
            return said
        left = (time.monotonic() - self.start) / at.done * open_points
        return f"{said}, about {duration(left)} left"


class _Lines:
    """Plain lines, for files and pipes."""

    def __init__(self, console: Console) -> None:
        self.console, self.clock, self.last = console, _Clock(), time.monotonic()

    def hear(self, at: Progress) -> None:
        """A line for each point, and now and then one for a slow point."""
        now = time.monotonic()
        if at.row is not None:
            _say(self.console, f"{_point(at.row)}    {self.clock(at)}")
        elif now - self.last >= EVERY:
            _say(self.console, f"{_place(at)}, {at.batches} batches    {self.clock(at)}")
        else:
            return
        self.last = now


def _place(at: Progress) -> str:
    return f"{at.curve.label}, length {at.length:,}"


def _point(row: Row) -> str:
    """One point in a line."""
    where = f"{row['label']}, length {row['length']:,}"
    if row["ms_mean"] is None:
        return f"{where}: {REASONS[row['end']]} ({row['note']})"
    said = f"{where}: {row['ms_mean']:,.4g} ms, mean of {row['batches']}, {row['how']}"
    if row["peak_bytes"] is not None:
        said += f", {row['peak_bytes'] / 1e6:,.0f} MB"
    if row["end"]:
        said += f": {REASONS[row['end']]}"
    return f"{said} ({row['note']})" if row["note"] else said


REASONS = {"time": "too slow, stopped", "memory": "out of memory", "refused": "refused"}


def _print_points(console: Console, device: str, points: Points) -> None:
    """Lengths by curves."""
    _say(console, f"\nMilliseconds on {device}:")
    table = plain_table([], ["length", *map(_heading, points)])
    cells = [{row["length"]: row for row in curve} for curve in points.values()]
    for length in sorted({length for curve in cells for length in curve}):
        table.add_row(f"{length:,}", *(shown_ms(curve.get(length)) for curve in cells))
    console.print(table)
    ends = {row["end"] for curve in points.values() for row in curve}
    if "time" in ends:
        limit = next(iter(points.values()))[0]["stop_ms"]
        _say(console, f"* above {limit:g} ms, where the curve ends")


def _heading(label: str) -> str:
    """A label in lines about as short as the numbers under it."""
    return "\n".join(line for part in label.split(", ") for line in textwrap.wrap(part, 11))


def _say(console: Console, line: str) -> None:
    console.print(line, highlight=False, markup=False, soft_wrap=True)
