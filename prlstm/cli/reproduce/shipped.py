"""`prlstm reproduce shipped`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from prlstm.cli.given import INTERRUPTED, read_device, told
from prlstm.cli.reproduce.options import OUT, Out, read_names, say_written
from prlstm.cli.reproduce.progress import shown
from prlstm.cli.reproduce.trained import RUNS, Runs, Some
from prlstm.cli.tables import plain_table
from prlstm.cli.train import Device
from prlstm.experiments.crew import work
from prlstm.experiments.runs import Store
from prlstm.experiments.shipping import RECIPES, Recipe, in_turn, put, wanted
from prlstm.report.numbers import percent
from prlstm.report.rows import CURVES, SCORES, read_results
from prlstm.report.scores import score_cells
from prlstm.training.interrupt import terminations_as_interrupts


def shipped(
    tasks: Some = None,
    device: Device = "auto",
    out: Out = OUT,
    runs: Runs = RUNS,
    folder: Annotated[
        Path, typer.Option("--models", help="Where the weights go, a folder for each task.")
    ] = Path("shipped"),
) -> None:
    """Train and score again the small models that come with the package.

    Stopped at any time, the same command goes on; models that rows answer are skipped.
    """
    chosen, console = read_device(device), Console()
    names = read_names(tasks, [recipe.task for recipe in RECIPES], "--tasks")
    recipes = [recipe for recipe in RECIPES if recipe.task in names]
    cells, most = [wanted(recipe) for recipe in recipes], max(one.steps for one in recipes)
    store = Store(out, runs, CURVES)
    with told():
        done = {n for n, (cell, recipe) in enumerate(zip(cells, recipes, strict=True))
                if not store.missing(cell, recipe.request)}  # fmt: skip
        try:
            with terminations_as_interrupts(), shown(console, cells, most, done, None) as say:
                work(cells, in_turn(recipes, store), store, chosen, say)
        except KeyboardInterrupt:
            console.print("Interrupted. All is saved: the same command goes on.", highlight=False)
            raise typer.Exit(INTERRUPTED) from None
        _print_scores(console, recipes, out)
        put_there = [put(recipe, store, folder) for recipe in recipes]
        say_written(console, [out / SCORES, out / CURVES, *filter(None, put_there)])
        for recipe, path in zip(recipes, put_there, strict=True):
            if path is None:
                console.print(f"  {recipe.task}: scored before; its run is not in {runs}",
                              highlight=False, markup=False, soft_wrap=True)  # fmt: skip


def _print_scores(console: Console, recipes: list[Recipe], out: Path) -> None:
    lines = plain_table(["task", "model"], ["steps", "score", "95 %", "guessing"])
    rows = read_results(out / SCORES)
    for recipe in recipes:
        one = wanted(recipe)
        (cell,) = score_cells(rows, [one.column], [one.task], "").values()
        for seed in cell.seeds:
            lines.add_row(one.task, one.column.title, f"{seed.step:,}", percent(seed.score),
                          f"{percent(seed.low)}-{percent(seed.high)}",
                          percent(cell.floor))  # fmt: skip
        for why in cell.failed:
            lines.add_row(one.task, f"failed: {why}", *[""] * 4)
    console.print(lines)
