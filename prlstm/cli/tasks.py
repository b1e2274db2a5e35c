"""`prlstm tasks`."""

import inspect
from typing import Annotated

import torch
import typer
from rich.console import Console

import prlstm
from prlstm.cli.given import named
from prlstm.cli.tables import plain_table
from prlstm.tasks.task import UNCOUNTED

app = typer.Typer(help="The formal-language tasks: list them, or show samples of one.")

# the longest word of training
EXAMPLE_LENGTH = 40


@app.callback(invoke_without_command=True)
def list_tasks(context: typer.Context) -> None:
    """List the tasks: their level, sizes, and what guessing scores."""
    if context.invoked_subcommand is not None:
        return
    numbers = ("level", "in", "out", "answers", "uniform", "constant", "position")
    table = plain_table(("task",), numbers)
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


@app.command("show")
def show_task(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name that `prlstm tasks` lists.")],
    length: Annotated[int, typer.Option(min=1, help="Tokens of a word.")] = 12,
    samples: Annotated[int, typer.Option(min=1, help="How many.")] = 5,
    seed: Annotated[int, typer.Option(help="Of the random numbers.")] = 0,
) -> None:
    """Show random words of a task and their answers."""
    task = named(prlstm.tasks.get, name, "NAME")
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
