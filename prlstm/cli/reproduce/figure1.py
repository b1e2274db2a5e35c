"""`prlstm reproduce figure1`."""

from typing import Annotated

import typer
from rich.console import Console

from prlstm.cli.given import told
from prlstm.cli.reproduce.options import OUT, Out, say_written
from prlstm.report.drawing import MOST_DRAWN, write_figure
from prlstm.tree import Plan


def figure1(
    length: Annotated[
        int, typer.Argument(metavar="LENGTH", help=f"Number of tokens, at most {MOST_DRAWN}.")
    ] = 8,
    out: Out = OUT,
) -> None:
    """Draw the tree of a sequence, and the block beside a Transformer encoder's (Figure 1)."""
    console = Console()
    with told():
        plan = Plan(length)
        written = write_figure(plan, out / "figure1")
    said = f"T = {length}: {plan.merges} merges in {len(plan.steps)} steps, {plan.depth} deep"
    console.print(said, highlight=False)
    say_written(console, written)
