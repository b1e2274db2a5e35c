"""The command line: a thin skin over the package."""

import dataclasses
import inspect
import shutil
from collections.abc import Callable
from typing import Annotated, TypeVar

import torch
import typer
from rich.console import Console
from rich.table import Table

import prlstm
from prlstm.tasks.task import UNCOUNTED
from prlstm.tree import Plan, bracketing

app = typer.Typer(
    help="Parallel Recursive LSTM: nonlinear recurrence of logarithmic parallel depth.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
tasks_app = typer.Typer(help="The formal-language tasks: list them, or show samples of one.")
app.add_typer(tasks_app, name="tasks")
models_app = typer.Typer(help="The models: list them, or show what can be chosen about one.")
app.add_typer(models_app, name="models")

Found = TypeVar("Found")

# Brackets of more leaves than this fill the screen and tell nothing.
MOST_BRACKETED = 32
# the longest word of training
EXAMPLE_LENGTH = 40


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"prlstm {prlstm.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Parallel Recursive LSTM: nonlinear recurrence of logarithmic parallel depth."""


@app.command()
def tree(length: Annotated[int, typer.Argument(min=1, help="Number of tokens.")]) -> None:
    """Show the tree of a sequence: which states are merged, level by level."""
    plan, last = Plan(length), Plan(length, start=length - 1)
    typer.echo(f"{'tokens: ' + format(length, ','):<22} {'merges':>18}  levels  depth")
    for name, one in (("every prefix", plan), ("the last state alone", last)):
        typer.echo(f"{name:<22} {one.merges:>18,}  {len(one.steps):>6}  {one.depth:>5}")
    typer.echo()
    try:
        typer.echo(plan.draw(shutil.get_terminal_size((120, 24)).columns))
        typer.echo("\no  a token's state    ├──●  two states merged; the result goes on at the ●")
    except ValueError:
        typer.echo("Too wide to draw here (a wider terminal helps). Merges at each level:\n")
        for step in plan.steps:
            typer.echo(f"  {step.phase:<4} {step.level:<2} {len(step):>18,}")
    if length <= MOST_BRACKETED:
        typer.echo(f"\nstate after token {length} = {bracketing(length)}")


@models_app.callback(invoke_without_command=True)
def list_models(
    context: typer.Context,
    task: Annotated[str, typer.Option(help="For which task the parameters are counted.")] = (
        "parity_check"
    ),
) -> None:
    """List the models: what they are, their parameters, how long and how much they compute."""
    if context.invoked_subcommand is not None:
        return
    chosen = _named(prlstm.tasks.get, task, "--task")
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name in ("model", "what it is"):
        table.add_column(name, no_wrap=True)
    for name in ("parameters", "depth", "work"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, kind in prlstm.models.MODELS.items():
        with torch.device("meta"):
            model = prlstm.models.build(name, chosen)
        parameters = sum(weight.numel() for weight in model.parameters())
        table.add_row(name, kind.about, f"{parameters:,}", kind.depth, kind.work)
    console = Console()
    console.print(table)
    console.print(
        f"\nparameters: with the defaults, for {chosen.name}"
        "\ndepth: how many steps wait for each other, on a tape of T cells with O answers"
        "\nwork: how many there are (steps, merges, slots of memory, pairs of cells)"
        "\n\nprlstm models show NAME tells what can be chosen",
        highlight=False,
    )


@models_app.command("show")
def show_model(
    name: Annotated[str, typer.Argument(help="A name that `prlstm models` lists.")],
) -> None:
    """Show what can be chosen about a model: its hyper-parameters and their defaults."""
    kind = _named(prlstm.models.kind, name, "NAME")
    typer.echo(f"{name}: {kind.about}\n")
    for field in dataclasses.fields(kind.options):
        among = field.metadata["among"]
        choices = f" One of {', '.join(among)}." if among else ""
        typer.echo(f"  {field.name} = {field.default!r}\n      {field.metadata['help']}{choices}")


@tasks_app.callback(invoke_without_command=True)
def list_tasks(context: typer.Context) -> None:
    """List the tasks: their level, sizes, and what guessing scores."""
    if context.invoked_subcommand is not None:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("task", no_wrap=True)
    for name in ("level", "in", "out", "answers", "uniform", "constant", "position"):
        table.add_column(name, justify="right")
    for task in map(prlstm.tasks.get, prlstm.tasks.names()):
        floors = task.floors
        guesses = (floors.uniform, floors.constant, floors.position)
        sizes = (task.input_size, task.output_size, task.output_length(EXAMPLE_LENGTH))
        percent = (f"{100 * guess:.1f}%" for guess in guesses)
        table.add_row(task.name, task.level, *map(str, sizes), *percent)
    console = Console()
    console.print(table)
    console.print(
        "\nlevel: regular, deterministic context-free, context-sensitive"
        "\nin, out: different tokens of a word, different classes of an answer"
        f"\nanswers: how many classes answer a word of {EXAMPLE_LENGTH} tokens"
        "\nuniform, constant, position: what guessing scores over lengths 41 to 500; any"
        "\n  class, the best one, or the best one for each length and place of an answer",
        highlight=False,
    )


@tasks_app.command("show")
def show_task(
    name: Annotated[str, typer.Argument(help="A name that `prlstm tasks` lists.")],
    length: Annotated[int, typer.Option(min=1, help="Tokens of a word.")] = 12,
    samples: Annotated[int, typer.Option(min=1, help="How many.")] = 5,
    seed: Annotated[int, typer.Option(help="Of the random numbers.")] = 0,
) -> None:
    """Show random words of a task and their answers."""
    task = _named(prlstm.tasks.get, name, "NAME")
    batch = task.sample(samples, length, generator=torch.Generator().manual_seed(seed))
    typer.echo(f"{task.paper_name} ({task.name}, {task.level})\n{inspect.getdoc(task)}\n")
    typer.echo(f"tokens 0, 1, ...: {'  '.join(symbol.strip() for symbol in task.symbols)}\n")
    words = [task.show(word) for word in batch.input]
    answers = [task.show_answer(answer) for answer in batch.target]
    sizes = (f"word of {batch.input.shape[1]}", f"answer of {batch.target.shape[1]}")
    wide = max(map(len, (sizes[0], *words)))
    for word, answer in (sizes, *zip(words, answers, strict=True)):
        typer.echo(f"{word:<{wide}}  {answer}")
    if any(UNCOUNTED in answer for answer in answers):
        typer.echo(f"\nevery {UNCOUNTED} is a zero, trained on but not scored")


def _named(get: Callable[[str], Found], name: str, given_as: str) -> Found:
    """What a user named, or the reason why there is no such thing."""
    try:
        return get(name)
    except ValueError as unknown:
        raise typer.BadParameter(str(unknown), param_hint=given_as) from None
