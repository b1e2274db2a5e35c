"""`prlstm reproduce table2`, `table3` and `figure3`: models trained and scored."""

import dataclasses
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
import typer
from rich.console import Console

from prlstm import models
from prlstm.cli.dry_run import print_units
from prlstm.cli.engine import (
    Address,
    CpusPerUnit,
    DryRun,
    Engine,
    EngineAsked,
    EngineName,
    GpusPerUnit,
)
from prlstm.cli.given import INTERRUPTED, named, read_seeds, told, typed
from prlstm.cli.reproduce.options import OUT, Out, read_names, say_written
from prlstm.cli.reproduce.progress import shown
from prlstm.cli.tables import plain_table
from prlstm.cli.train import Device
from prlstm.environment import environment, place_of
from prlstm.experiments.budget import by_gain, in_order, read_budget
from prlstm.experiments.catalogue import EXPERIMENTS, Experiment
from prlstm.experiments.crew import Choice
from prlstm.experiments.runs import Store, Wanted
from prlstm.report.chart import write_chart
from prlstm.report.columns import Column
from prlstm.report.curves import loss_over_time
from prlstm.report.numbers import percent, steps_range
from prlstm.report.rows import SCORES, read_results
from prlstm.report.score_table import SOLVED_BY_FLOOR, ScoreTable, write_table
from prlstm.report.scores import score_cells
from prlstm.training import Request
from prlstm.training.interrupt import terminations_as_interrupts

# a validation takes as long as hundreds of steps: they are few
VALIDATE_EVERY = 10_000
RUNS = Path("runs")

Some = Annotated[str | None, typer.Option(help="Some of them, as a,b. (all)", show_default=False)]
Seeds = Annotated[
    str | None,
    typer.Option(help="How many as in 3, or which as in 3:5. (the paper's)", show_default=False),
]
Steps = Annotated[
    int | None,
    typer.Option(min=1, help="Updates of every seed. (the paper's)", show_default=False),
]
Budget = Annotated[
    str | None,
    typer.Option(
        help="A time as 20m, spent where it tells most; cells say how many steps they got.",
        show_default=False,
    ),
]
Jobs = Annotated[int, typer.Option(min=1, help="Cells made at a time, each in its process.")]
Precision = Annotated[
    Literal["auto", "float32", "tf32", "bfloat16"],
    typer.Option(help="Of the products; auto: bfloat16 on a GPU, float32 on a CPU."),
]
Small = Annotated[
    int | None, typer.Option(min=1, help="Instead of the paper's, for a trial.", show_default=False)
]
Samples = Annotated[int, typer.Option(help="Words of each length for the score.")]
Runs = Annotated[Path, typer.Option(help="The folder of the runs themselves.")]


@dataclass(frozen=True)
class Asked:
    """An experiment as it was asked for: some of its cells, and so many steps."""

    experiment: Experiment
    columns: Sequence[Column]
    cells: Sequence[Wanted]
    tasks: Sequence[str]
    chosen: Sequence[Column]
    steps: int
    # what tells it from the paper's settings, as a part of file names
    suffix: str


def score_table(name: str, about: str) -> Callable[..., None]:
    """The command of a table of scores."""

    def command(
        tasks: Some = None,
        models: Some = None,
        seeds: Seeds = None,
        steps: Steps = None,
        budget: Budget = None,
        jobs: Jobs = 1,
        precision: Precision = "auto",
        samples: Samples = 512,
        hidden_size: Small = None,
        batch_size: Small = None,
        device: Device = "auto",
        out: Out = OUT,
        runs: Runs = RUNS,
        engine: EngineName = "local",
        address: Address = None,
        cpus_per_unit: CpusPerUnit = None,
        gpus_per_unit: GpusPerUnit = None,
        dry_run: DryRun = False,
    ) -> None:
        with_what = EngineAsked(engine, address, cpus_per_unit, gpus_per_unit, jobs, device)
        small = {"hidden_size": hidden_size, "batch_size": batch_size}
        read = partial(_read, EXPERIMENTS[name], tasks, models, seeds, steps, precision, small)
        asked = read(with_what.device_here())
        seconds = None if budget is None else named(read_budget, budget, "--budget")
        with typed():
            request = Request(steps=asked.steps, validate_every=VALIDATE_EVERY, samples=samples)
        store, console = Store(out, runs, asked.experiment.curves), Console()
        with told(), ExitStack() as held:
            maker = held.enter_context(with_what.started(is_dry=dry_run))
            # nodes may have GPUs where this machine has none
            asked = read(maker.device)
            if dry_run:
                print_units(console, asked.cells, request, store, maker, "--steps 1000")
                return
            ends = None if seconds is None else time.monotonic() + seconds
            choose = in_order(asked.cells, request, store)
            if ends is not None:
                choose = by_gain(asked.cells, request, store, name, ends)
            failures = _make(console, asked, request, store, choose, maker, ends)
            unseen = sum(not store.answers(cell, request) for cell in asked.cells)
            if ends is not None and unseen:
                said = f"Not begun, as the budget would not hold them: {unseen} of the cells."
                console.print(said, highlight=False)
            table = _table(asked, out)
            _print_table(console, asked, table)
            written = write_table(table, out / f"{name}{asked.suffix}")
            say_written(console, [out / SCORES, out / asked.experiment.curves, *written])
            if failures:
                raise ValueError("\n".join(failures))

    command.__name__, command.__doc__ = name, about
    return command


def figure3(
    tasks: Some = None,
    models: Some = None,
    every_task: Annotated[
        bool, typer.Option("--all", help="All fifteen tasks, as in the paper's appendix.")
    ] = False,
    steps: Steps = None,
    precision: Precision = "auto",
    hidden_size: Small = None,
    batch_size: Small = None,
    device: Device = "auto",
    out: Out = OUT,
    runs: Runs = RUNS / "figure3",
    engine: EngineName = "local",
    address: Address = None,
    cpus_per_unit: CpusPerUnit = None,
    gpus_per_unit: GpusPerUnit = None,
    dry_run: DryRun = False,
) -> None:
    """Figure 3: the training loss over wall-clock time, one run after the other.

    The clock runs from the first step on, start-up and compilation included. With Ray every run has
    a whole GPU, or all processors of a node.
    """
    with_what = EngineAsked(engine, address, cpus_per_unit, gpus_per_unit, 1, device)
    experiment = EXPERIMENTS["figure3"]
    if every_task or tasks is not None:
        experiment = replace(experiment, tasks=EXPERIMENTS["table2"].tasks)
    small = {"hidden_size": hidden_size, "batch_size": batch_size}
    read = partial(_read, experiment, tasks, models, None, steps, precision, small)
    asked = read(with_what.device_here())
    request = Request(steps=asked.steps, validate_every=0)
    # which nodes of a cluster make a time is not known before
    place = None if engine == "ray" else place_of(environment(with_what.device_here()))
    store = Store(out, runs, experiment.curves, is_scored=False, place=place)
    console = Console()
    with told(), ExitStack() as held:
        maker = held.enter_context(with_what.started(is_timed=True, is_dry=dry_run))
        # nodes may have GPUs where this machine has none
        asked = read(maker.device)
        if dry_run:
            print_units(console, asked.cells, request, store, maker, "--steps 1000")
            return
        choose = in_order(asked.cells, request, store)
        failures = _make(console, asked, request, store, choose, maker, None)
        rows = read_results(out / experiment.curves)
        fitting = [row for row in rows if any(one.fits(row) for one in asked.columns)]
        known = {row["task"] for row in fitting}
        every = [name for name in EXPERIMENTS["table2"].tasks if name in known]
        title = f"Training loss over wall-clock time on {_devices(fitting)}"
        chart = loss_over_time(fitting, asked.columns, every, title)
        written = write_chart(chart, out / f"{experiment.name}{asked.suffix}")
        say_written(console, [out / experiment.curves, *written])
        if failures:
            raise ValueError("\n".join(failures))


def _devices(rows: Sequence[dict[str, Any]]) -> str:
    return ", ".join(dict.fromkeys(str(row["made_with"]["device"]) for row in rows))


def _read(
    experiment: Experiment,
    tasks: str | None,
    names: str | None,
    seeds: str | None,
    steps: int | None,
    precision: str,
    small: dict[str, int | None],
    device: torch.device,
) -> Asked:
    """What was typed, as cells that are wanted."""
    if precision == "auto":
        precision = "bfloat16" if device.type == "cuda" else "float32"
    if precision == "tf32" and device.type != "cuda":
        raise typer.BadParameter("'tf32': expected a CUDA device", param_hint="--precision")
    changed = {name: value for name, value in small.items() if value is not None}
    columns = _told_apart([_changed(column, changed) for column in experiment.columns])
    wanted = read_names(names, [column.name for column in columns], "--models")
    some = [column for column in columns if column.name in wanted]
    those = read_names(tasks, experiment.tasks, "--tasks")
    numbers = range(experiment.seeds) if seeds is None else read_seeds(seeds)
    cells = [Wanted(task, one, tuple(numbers), precision) for one in some for task in those]
    suffix = "".join(f"-{name}-{value}" for name, value in changed.items())
    goal = experiment.steps if steps is None else steps
    return Asked(experiment, columns, cells, those, some, goal, suffix)


def _changed(column: Column, changed: dict[str, int]) -> Column:
    """A column with other settings, of those that its model has."""
    options = {field.name for field in dataclasses.fields(models.kind(column.model).options)}
    known = {n: v for n, v in changed.items() if n in options or n not in ("hidden_size",)}
    return column.with_settings(known)


def _told_apart(columns: Sequence[Column]) -> list[Column]:
    """Of columns that a trial has made equal the last one: a smaller model is small no more."""
    last = {(column.model, str(column.setting)): column for column in columns}
    return [column for column in columns if column in last.values()]


def _make(
    console: Console,
    asked: Asked,
    request: Request,
    store: Store,
    choose: Choice,
    maker: Engine,
    ends: float | None,
) -> list[str]:
    """Make all cells; an interrupt saves, says how to go on, and ends."""
    cells = asked.cells
    done = {number for number, cell in enumerate(cells) if not store.missing(cell, request)}
    console.print(
        f"{asked.experiment.title}: {len(cells)} cell{'s' * (len(cells) != 1)}, {len(done)} of "
        "them answered by rows in "
        f"{store.results}; {asked.steps:,} steps on {maker.place}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    try:
        with ExitStack() as held:
            held.enter_context(terminations_as_interrupts())
            listen = held.enter_context(shown(console, cells, asked.steps, done, ends))
            return maker.work(cells, choose, store, maker.device, listen)
    except KeyboardInterrupt:
        console.print("Interrupted. All is saved: the same command goes on.", highlight=False)
        raise typer.Exit(INTERRUPTED) from None


def _table(asked: Asked, out: Path) -> ScoreTable:
    """All that is known of the experiment, not this command's cells alone."""
    experiment = asked.experiment
    cells = score_cells(
        read_results(out / SCORES), asked.columns, experiment.tasks, experiment.name
    )
    return ScoreTable(experiment.title, experiment.tasks, asked.columns, cells)


def _print_table(console: Console, asked: Asked, table: ScoreTable) -> None:
    """The cells that were asked for."""
    lines = plain_table(
        ["task", "model"], ["paper", "max", "95 %", "median", "solved", "steps", "floor"]
    )
    for task in asked.tasks:
        for column in asked.chosen:
            cell = table.cells[task, column.name]
            paper = "-" if cell.paper is None else percent(cell.paper)
            parts = ["-", "-", "-", cell.outcome if cell.tried else "-", "-"]
            if cell.seeds:
                best = cell.best_seed
                parts = [
                    percent(cell.most) + (" *" if cell.is_solved else "  "),
                    f"{percent(best.low)}-{percent(best.high)}",
                    percent(cell.median), cell.outcome, steps_range(*cell.steps),
                ]  # fmt: skip
            floor = percent(cell.floor) + (f" {SOLVED_BY_FLOOR}" if cell.is_floor_enough else "  ")
            lines.add_row(task, column.title, paper, *parts, floor)
            for why in cell.failed:
                lines.add_row("", f"failed: {why}", *[""] * 7)
    console.print(lines)
    console.print(
        "\nmax, median: of the seeds' scores, the mean accuracy over lengths 41 to 500 with the "
        "last weights, rounded down. 95 %: where the greatest would lie on other words. solved: "
        "how many seeds of those tried; one that failed has no score. "
        f"*: solved, 90 % or more. {SOLVED_BY_FLOOR}: guessing by position alone reaches that.",
        highlight=False,
    )
