"""`prlstm models`."""

import dataclasses
from typing import Annotated

import torch
import typer
from rich.console import Console

import prlstm
from prlstm.cli.given import named
from prlstm.cli.tables import plain_table

app = typer.Typer(help="The models: list them, or show what can be chosen about one.")


@app.callback(invoke_without_command=True)
def list_models(
    context: typer.Context,
    task: Annotated[str, typer.Option(help="For which task the parameters are counted.")] = (
        "parity_check"
    ),
) -> None:
    """List the models: what they are, their parameters, how long and how much they compute."""
    if context.invoked_subcommand is not None:
        return
    chosen = named(prlstm.tasks.get, task, "--task")
    table = plain_table(("model", "what it is"), ("parameters", "depth", "work"))
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


@app.command("show")
def show_model(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name that `prlstm models` lists.")],
) -> None:
    """Show what can be chosen about a model: its hyper-parameters and their defaults."""
    kind = named(prlstm.models.kind, name, "NAME")
    typer.echo(f"{name}: {kind.about}\n")
    for field in dataclasses.fields(kind.options):
        among = field.metadata["among"]
        choices = f" One of {', '.join(among)}." if among else ""
        typer.echo(f"  {field.name} = {field.default!r}\n      {field.metadata['help']}{choices}")
