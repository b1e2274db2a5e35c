"""All commands under one name."""

from typing import Annotated

import typer

import prlstm
from prlstm.cli.evaluate import evaluate
from prlstm.cli.inspect import inspect
from prlstm.cli.models import app as models
from prlstm.cli.plot import plot
from prlstm.cli.predict import predict
from prlstm.cli.report import report
from prlstm.cli.reproduce import app as reproduce
from prlstm.cli.runs import runs
from prlstm.cli.sweep import sweep
from prlstm.cli.tasks import app as tasks
from prlstm.cli.train import resume, train
from prlstm.cli.tree import tree

app = typer.Typer(
    help="Parallel Recursive LSTM: nonlinear recurrence of logarithmic parallel depth.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


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


app.command()(train)
app.command()(resume)
app.command("eval")(evaluate)
app.command()(predict)
# a word may begin like an option: a walk on a circle with a step back, -
app.command(context_settings={"ignore_unknown_options": True})(inspect)
app.command()(plot)
app.command()(runs)
app.command()(sweep)
app.add_typer(reproduce, name="reproduce")
app.command()(report)
app.add_typer(tasks, name="tasks")
app.add_typer(models, name="models")
app.command()(tree)
