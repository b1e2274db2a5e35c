"""What all experiments are told, and what they say at the end."""

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

Out = Annotated[Path, typer.Option("--out", help="The folder of rows, tables and figures.")]
OUT = Path("results")


def say_written(console: Console, paths: Sequence[Path]) -> None:
    """Name the files that were written, one on a line; without a row there are none."""
    there = [path for path in paths if path.exists()]
    if not there:
        return
    console.print("\nWritten:", highlight=False)
    for path in there:
        console.print(f"  {path}", highlight=False, markup=False, soft_wrap=True)


def read_names(text: str | None, known: Sequence[str], given_as: str) -> list[str]:
    """Some of the known names, as `a,b`; all of them by default. In the order of those known."""
    if text is None:
        return list(known)
    asked = [name.strip() for name in text.split(",") if name.strip()]
    for name in asked:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            meant = f", did you mean {close[0]!r}?" if close else ""
            raise typer.BadParameter(
                f"{name!r:.40}: expected some of {', '.join(known)}{meant}", param_hint=given_as
            )
    if not asked:
        raise typer.BadParameter(
            f"{text!r:.40}: expected at least one of {', '.join(known)}", param_hint=given_as
        )
    return [name for name in known if name in asked]
