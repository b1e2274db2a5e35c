"""`prlstm runs`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from prlstm import models, tasks
from prlstm.cli.given import ROOT, named, say_error
from prlstm.cli.tables import OTHERS, percent, plain_table
from prlstm.report.paper import published
from prlstm.training import RunFolder
from prlstm.training.config import differences
from prlstm.training.results import Result, find_runs, result, summary

# of a table of runs
WIDTH = 160


def runs(
    root: Annotated[Path, typer.Option("--out", help="The folder of all runs.")] = ROOT,
    task: Annotated[str | None, typer.Option(help="Only those on this task.")] = None,
    model: Annotated[str | None, typer.Option(help="Only those of this model.")] = None,
    solved: Annotated[
        bool | None,
        typer.Option("--solved/--unsolved", help="Only those whose score succeeded, or did not."),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="A line for each setting, over its seeds.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="All that is known, as JSON; scores from 0 to 1.")
    ] = False,
) -> None:
    """List the runs: how far they are, and what they score."""
    if task is not None:
        named(tasks.get, task, "--task")
    if model is not None:
        named(models.kind, model, "--model")
    found, damaged = _read(root)
    chosen = [
        one
        for one in found
        if (task is None or one.config.task == task)
        and (model is None or one.config.model == model)
        and (solved is None or (one.score is not None and (one.score >= 0.9) == solved))
    ]
    # names are there to be copied: a terminal may break a line, a table may not
    console = Console(width=max(Console().width, WIDTH))
    if as_json:
        typer.echo(json.dumps([_as_json(one) for one in chosen], indent=2))
    elif not chosen:
        _say_none(root, len(found), len(damaged))
    elif compare:
        _print_settings(console, chosen)
    else:
        _print_runs(console, chosen)
    for message in damaged:
        say_error(message)
    if damaged:
        raise typer.Exit(1)


def _say_none(root: Path, found: int, damaged: int) -> None:
    if found or damaged:
        typer.echo(f"None of the {found + damaged} runs in {root}.")
        return
    said = f"No runs in {root}" if root.exists() else f"There is no folder {root}"
    typer.echo(f"{said}. `prlstm train parity_check --preset quick` makes one in a minute.")


def _read(root: Path) -> tuple[list[Result], list[str]]:
    """All runs that can be read, and what is wrong with the others."""
    found, damaged = [], []
    for path in find_runs(root):
        try:
            found.append(result(RunFolder.open(path)))
        except (OSError, ValueError, TypeError) as wrong:
            damaged.append(str(wrong))
    return found, damaged


def _print_runs(console: Console, results: Sequence[Result]) -> None:
    others = [name for name in OTHERS if any(name in one.scores for one in results)]
    columns = ["steps", "score", *(OTHERS[name] for name in others), "paper", "guessing"]
    table = plain_table(["run"], columns)
    for one in results:
        scores = [_last(one)]
        scores += [percent(s.value if (s := one.scores.get(name)) else None) for name in others]
        beside = (percent(_paper(one)), percent(one.floor))
        steps = f"{one.step:,}" if one.is_done else f"{one.step:,} of {one.asked:,}"
        table.add_row(Text(one.path.name), steps, *scores, *beside)
    console.print(table)


def _print_settings(console: Console, results: Sequence[Result]) -> None:
    """What differs between settings, and the protocol's numbers over seeds."""
    groups: dict[str, list[Result]] = {}
    for one in results:
        groups.setdefault(one.config.with_seed(0).name, []).append(one)
    settings = differences([group[0].config for group in groups.values()])
    columns = ["seeds", "steps", "max", "median", "solved", "paper", "guessing"]
    table = plain_table(["setting"], columns)
    for group, setting in zip(groups.values(), settings, strict=True):
        first = group[0]
        said = [f"{setting.pop('task', first.config.task)}", setting.pop("model", "")]
        said += [f"{name}={value}" for name, value in setting.items()]
        scored = [one.score for one in group if one.score is not None]
        over = summary(scored) if scored else None
        numbers = (percent(over.most), percent(over.median)) if over else ("-", "-")
        succeeded = f"{over.succeeded} of {over.seeds}" if over else "-"
        steps = sorted({one.step for one in group})
        shown = f"{steps[0]:,}" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,}"
        beside = (percent(_paper(first)), percent(first.floor))
        table.add_row(
            Text(" ".join(part for part in said if part)),
            str(len(group)),
            shown,
            *numbers,
            succeeded,
            *beside,
        )
    console.print(table)


def _last(one: Result) -> str:
    """The score, and its step if the run has gone on since."""
    last = one.scores.get("last")
    if last is None or last.step == one.step:
        return percent(one.score)
    return f"{percent(one.score)} at {last.step:,}"


def _paper(one: Result) -> float | None:
    return published(one.config.task, one.config.model, one.config.hyper_parameters)


def _as_json(one: Result) -> dict[str, Any]:
    scores = {
        name: {"score": score.value, "step": score.step, "samples": score.samples}
        for name, score in one.scores.items()
    }
    trained = {"loss": one.loss, "accuracy": one.accuracy, "seconds": one.seconds}
    return {
        "name": one.path.name,
        "path": str(one.path),
        "step": one.step,
        "steps_asked": one.asked,
        "done": one.is_done,
        "score": one.score,
        "scores": scores,
        "floor": one.floor,
        "paper": _paper(one),
        "training": {name: None if value != value else value for name, value in trained.items()},
        "config": one.config.as_json(),
    }
