"""`prlstm sweep`."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from prlstm.cli.dry_run import print_units
from prlstm.cli.engine import Address, CpusPerUnit, DryRun, EngineAsked, EngineName, GpusPerUnit
from prlstm.cli.given import INTERRUPTED, told
from prlstm.cli.reproduce.options import say_written
from prlstm.cli.reproduce.progress import shown
from prlstm.cli.runs import WIDTH
from prlstm.cli.tables import plain_table
from prlstm.cli.train import Device
from prlstm.experiments.budget import in_order
from prlstm.experiments.runs import Store
from prlstm.experiments.sweep import Sweep, read_sweep
from prlstm.report.numbers import percent, steps_range
from prlstm.report.rows import CURVES, SCORES, read_results
from prlstm.report.scores import as_ranges
from prlstm.report.sweep_table import other_lines, sweep_lines, write_sweep
from prlstm.training.interrupt import terminations_as_interrupts


def sweep(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A grid of settings, in TOML; see docs/cli.md.")
    ],
    jobs: Annotated[int, typer.Option(min=1, help="Cells made at a time.")] = 1,
    device: Device = "auto",
    out: Annotated[
        Path | None,
        typer.Option(help="The folder of the rows; by default named as the file.", metavar="PATH"),
    ] = None,
    runs: Annotated[Path, typer.Option(help="The folder of the runs themselves.")] = Path("runs"),
    engine: EngineName = "local",
    address: Address = None,
    cpus_per_unit: CpusPerUnit = None,
    gpus_per_unit: GpusPerUnit = None,
    dry_run: DryRun = False,
) -> None:
    """Train and score every combination of the settings in a file.

    Stopped at any time, the same command goes on; nothing is overwritten.
    """
    with_what = EngineAsked(engine, address, cpus_per_unit, gpus_per_unit, jobs, device)
    console = Console()
    with told(), ExitStack() as held:
        grid = read_sweep(file)
        folder = Path("results") / file.stem if out is None else out
        store = Store(folder, runs, CURVES, lengths=grid.lengths)
        maker = held.enter_context(with_what.started(is_dry=dry_run))
        if dry_run:
            print_units(console, grid.cells, grid.request, store, maker, f"steps = 1000 in {file}")
            return
        done = {n for n, c in enumerate(grid.cells) if not store.missing(c, grid.request)}
        steps = grid.request.steps
        console.print(f"{file}: {len(grid.cells)} cells, {len(done)} of them answered by rows in "
                      f"{folder}; {steps:,} steps on {maker.place}", highlight=False, markup=False,
                      soft_wrap=True)  # fmt: skip
        choose = in_order(grid.cells, grid.request, store)
        try:
            with terminations_as_interrupts(), shown(console, grid.cells, steps, done, None) as say:
                failures = maker.work(grid.cells, choose, store, maker.device, say)
        except KeyboardInterrupt:
            console.print("Interrupted. All is saved: the same command goes on.", highlight=False)
            raise typer.Exit(INTERRUPTED) from None
        written = _print_and_write(console, grid, folder)
        say_written(console, [folder / SCORES, folder / CURVES, written])
        if failures:
            raise ValueError("\n".join(failures))


def _print_and_write(console: Console, grid: Sweep, folder: Path) -> Path:
    """A line for each cell of the grid; the file has those of all other rows too."""
    rows = read_results(folder / SCORES)
    cells = [(cell.task, cell.column) for cell in grid.cells]
    lines = sweep_lines(rows, cells, as_ranges(grid.lengths))
    table = plain_table(["task", "setting"], ["max", "median", "solved", "steps", "floor"])
    for line in lines:
        cell = line.cell
        parts = ["-", "-", cell.outcome if cell.tried else "-", "-"]
        if cell.seeds:
            most, median = percent(cell.most), percent(cell.median)
            parts = [most, median, cell.outcome, steps_range(*cell.steps)]
        floor = "-" if line.floor is None else percent(line.floor)
        table.add_row(cell.task, cell.column.title, *parts, floor)
    # settings are there to be read: a terminal may break a line, a table may not
    Console(width=max(console.width, WIDTH)).print(table)
    return write_sweep([*lines, *other_lines(rows, lines)], folder / "sweep.csv")
