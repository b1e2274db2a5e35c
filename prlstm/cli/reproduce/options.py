"""What all experiments are told, and what they say at the end."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

Out = Annotated[Path, typer.Option("--out", help="The folder of rows, tables and figures.")]
OUT = Path("results")


def say_written(console: Console, paths: Sequence[Path]) -> None:
    """Name the files that were written, one on a line."""
    console.print("\nWritten:", highlight=False)
    for path in paths:
        console.print(f"  {path}", highlight=False, markup=False, soft_wrap=True)
