"""`prlstm tree`."""

import shutil
from typing import Annotated

import typer

from prlstm.tree import Plan, bracketing

# Brackets of more leaves than this fill the screen and tell nothing.
MOST_BRACKETED = 32


def tree(
    length: Annotated[int, typer.Argument(min=1, metavar="LENGTH", help="Number of tokens.")],
) -> None:
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
