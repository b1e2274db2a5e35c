"""`prlstm reproduce table1`."""

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from prlstm.cli.given import INTERRUPTED, ROOT, find_model, read_device, read_numbers, told, typed
from prlstm.cli.reproduce.options import OUT, Out, say_written
from prlstm.cli.tables import duration, plain_table
from prlstm.cli.train import Device
from prlstm.experiments.gradients import Gradients, Weights, fresh
from prlstm.experiments.growth import COUNTED, DISTANCES, LENGTHS, LONGEST, Growth
from prlstm.files import Row
from prlstm.report.chart import write_chart
from prlstm.report.growth import (
    LABELS,
    NOTE,
    OF_PATHS,
    Line,
    Machine,
    machines,
    table,
    write_table,
)
from prlstm.report.growth_charts import NAMES, gradients_chart, paths_chart, times_chart
from prlstm.report.rows import GRADIENTS, GROWTH, read_results
from prlstm.training.interrupt import terminations_as_interrupts
from prlstm.tree.counts import Counts, counts, over_distance

# lengths that the terminal shows of all that are counted
SHOWN = (1, 8, 40, 100, 500, 1000, 1023, 1024, 4095, 4096)


def table1(
    lengths: Annotated[
        str | None,
        typer.Option(help="Of what is timed; by default doublings, to 4,096 on a CPU."),
    ] = None,
    length: Annotated[int, typer.Option(help="Of the words of the gradients.")] = 256,
    run: Annotated[
        list[str] | None,
        typer.Option(help="Gradients of this run as well, a folder or a name; several times."),
    ] = None,
    hidden_size: Annotated[int, typer.Option(help="Of PR-LSTM and LSTM.")] = 256,
    device: Device = "auto",
    root: Annotated[Path, typer.Option("--runs", help="The folder of all runs.")] = ROOT,
    out: Out = OUT,
) -> None:
    """Work, depth and paths counted, times and gradients measured, beside the paper's Table 1.

    Stopped at any time, the same command goes on; what rows already answer is skipped.
    """
    chosen, console = read_device(device), Console()
    timed = LENGTHS[chosen.type]
    if lengths is not None:
        timed = read_numbers(lengths, "--lengths", 1, example="64,1024 or 1:40")
    with typed():
        times = Growth(timed, hidden_size, chosen)
        norms = Gradients(fresh(hidden_size), length, chosen)
    growth, gradients = out / GROWTH, out / GRADIENTS
    with told():
        folders = [find_model(name, root) for name in run or ()]
        weights = [Weights(folder.name, folder=folder) for folder in folders]
        for one in weights:
            one.load()
        norms = replace(norms, weights=[*norms.weights, *weights])
        slow, steep = times.missing(read_results(growth)), norms.missing(read_results(gradients))
        try:
            with terminations_as_interrupts():
                counted = [counts(one) for one in sorted(COUNTED)]
                apart = over_distance(LONGEST, sorted(DISTANCES))
                _show(console, times.measure(slow, growth), len(slow), "times")
                _show(console, norms.measure(steep, gradients), len(steep), "gradients")
        except KeyboardInterrupt:
            _say(console, f"Interrupted. The rows so far are in {out}; the same command goes on.")
            raise typer.Exit(INTERRUPTED) from None
        rows, places = read_results(growth), machines(read_results(growth))
        lines = table(counted[-1], rows)
        written = [growth, gradients, *write_table(lines, places, out / "table1")]
        for name, chart in {
            "paths": paths_chart(counted, LONGEST, apart),
            "times": times_chart(rows),
            "gradients": gradients_chart(read_results(gradients)),
        }.items():
            written += write_chart(chart, out / f"table1-{name}")
    _print_counts(console, counted)
    _print_lines(console, lines, places)
    say_written(console, written)


def _show(console: Console, made: Iterable[Row], missing: int, what: str) -> None:
    """A bar on a terminal, and a line for each row."""
    begun = time.monotonic()
    said = TextColumn("{task.fields[said]}")
    quiet = not console.is_terminal
    with Progress(BarColumn(30), said, console=console, transient=True, disable=quiet) as bar:
        task = bar.add_task(what, total=missing, said=f"{what}: 0 of {missing}")
        for done, row in enumerate(made, 1):
            left = (time.monotonic() - begun) / done * (missing - done)
            rest = f"{what}: {done} of {missing}, about {duration(left)} left"
            bar.update(task, completed=done, said=rest)
            line = f"{_row(row)}    {rest}" if quiet else _row(row)
            _say(bar.console, line)


def _row(row: Row) -> str:
    """A row of either file in a line."""
    if "norms" in row:
        whose = f"seed {row['seed']}" if row["run"] is None else row["run"]
        first, last = row["norms"][0], row["norms"][-1]
        said = f"of the last token {first:.2g}, of the first {last:.2g}"
        return f"gradients of {NAMES[row['model']]}, {whose}, T = {row['length']}: {said}"
    took = row.get("failed", "") if row["ms"] is None else f"{row['ms']:,.4g} ms"
    return f"{LABELS[row['model']]}, T = {row['length']:,}: {took}"


def _print_counts(console: Console, counted: list[Counts]) -> None:
    """The tree at some lengths."""
    _say(console, "\nCounted in the tree (merges; paths from a token to the last state):")
    names = ["T", "work, all", "work, last", "depth, all", "depth, last"]
    shown = plain_table([], [*names, "path: least", "mean", "most"])
    for one in counted:
        if one.length in SHOWN:
            work = (one.merges, one.merges_last, one.depth, one.depth_last)
            path = (f"{one.to_last.least}", f"{one.to_last.mean:.2f}", f"{one.to_last.most}")
            shown.add_row(f"{one.length:,}", *(f"{number:,}" for number in work), *path)
    console.print(shown)


def _print_lines(console: Console, lines: list[Line], places: list[Machine]) -> None:
    """Table 1, with a column of exponents for each machine."""
    _say(console, f"\nTable 1, counted at T = {lines[0].length:,}:")
    marks = [f"({chr(97 + number % 26)})" for number in range(len(places))]
    shown = plain_table(
        ["model", "paper's time"], ["work", "depth", "mean path", "longest", *marks]
    )
    for line in lines:
        fits = ["-" if one is None else f"T^{one.exponent:.2f}" for one in line.fits]
        counted = (f"{line.work:,}", f"{line.depth:,}", f"{line.path_mean:,.1f}")
        model = line.model
        shown.add_row(model.label, model.formula, *counted, f"{line.path_most:,}", *fits)
    console.print(shown)
    for mark, place in zip(marks, places, strict=True):
        _say(console, f"{mark} fitted to times on {place.said}")
    console.print(f"\n{NOTE}\n\n{OF_PATHS}", highlight=False, markup=False)


def _say(console: Console, line: str) -> None:
    console.print(line, highlight=False, markup=False, soft_wrap=True)
