"""`prlstm eval`."""

from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from prlstm import tasks
from prlstm.cli.given import ROOT, read_device, read_numbers, read_run, told
from prlstm.cli.tables import percent, plain_table
from prlstm.cli.train import Device, Root, Which
from prlstm.evaluation import LengthCounts
from prlstm.report.paper import published
from prlstm.tasks.floors import SCORED
from prlstm.training import Event, RunFolder
from prlstm.training.events import Scoring
from prlstm.training.runs import SCORES
from prlstm.training.scoring import score

# lengths that have a line of their own
MOST_SHOWN = 20


def evaluate(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The folder of a run, or its name.")],
    lengths: Annotated[
        str, typer.Option(help="As in 41:500 (both count), or 1000,10000.")
    ] = "41:500",
    samples: Annotated[int, typer.Option(help="Words of each length: a multiple of 64.")] = 512,
    weights: Which = "last",
    device: Device = "auto",
    root: Root = ROOT,
) -> None:
    """Score a run: how often it is right, at any lengths. The counts are kept beside it."""
    chosen, asked = read_device(device), read_numbers(lengths, "--lengths", 1)
    console = Console()
    with told():
        folder = read_run(run, root)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task(f"scoring the {weights} weights", total=1.0)

            def report(event: Event) -> None:
                if isinstance(event, Scoring):
                    bar.update(task, completed=event.share)

            (counts,) = score([folder], weights, asked, samples, device=chosen, report=report)
    _print_counts(console, folder, counts, weights)


def _print_counts(console: Console, folder: RunFolder, counts: LengthCounts, weights: str) -> None:
    """Accuracy at each length, or over some together where there are many."""
    task = tasks.get(folder.config.task)
    each = -(-len(counts.lengths) // MOST_SHOWN)
    table = plain_table([], ["length", "right", "of", "accuracy"])
    for first in range(0, len(counts.lengths), each):
        some = slice(first, first + each)
        low, *_, high = (*counts.lengths[some], counts.lengths[some][-1])
        right, of = int(counts.correct[some].sum()), int(counts.total[some].sum())
        accuracy = float(counts.accuracy[some].mean())
        shown = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        table.add_row(shown, f"{right:,}", f"{of:,}", percent(accuracy))
    console.print(table)
    name = "score" if counts.lengths == tuple(SCORED) else "mean over these lengths"
    console.print(f"\n{name}: {percent(counts.score)}, with the {weights} weights", highlight=False)
    if counts.lengths == tuple(SCORED):
        config = folder.config
        paper = published(config.task, config.model, config.hyper_parameters)
        beside = "none" if paper is None else percent(paper)
        console.print(f"paper: {beside}    guessing: {percent(task.floors.best)}", highlight=False)
    console.print(f"counts: {folder.path / SCORES}", highlight=False, markup=False, soft_wrap=True)
