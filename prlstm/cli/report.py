"""`prlstm report`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from prlstm.cli.given import told
from prlstm.files import write_whole
from prlstm.report.explorer import explorer_section
from prlstm.report.page import build_page

USUAL = Path("results")


def report(
    results: Annotated[
        Path | None,
        typer.Option(
            help="The folder of rows, as `prlstm reproduce` makes it; results, if it is there."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The page.")] = Path("report.html"),
) -> None:
    """Make one page of HTML: tables and charts of all rows, a model to try; needs no network.

    Rows are those of `prlstm reproduce`; `prlstm runs` and `prlstm plot` show other runs.
    """
    console = Console()
    if results is None and not USUAL.is_dir():
        console.print(f"No folder {USUAL} here: the page has the tree to play with, and no rows.")
    elif results is None:
        results = USUAL
    with told():
        page = build_page(results, explorer_section()).encode()
        out.parent.mkdir(parents=True, exist_ok=True)
        write_whole(out, page)
    size = f"{len(page) / 1e6:.2f} MB" if len(page) >= 1e6 else f"{len(page) / 1e3:.0f} kB"
    console.print("\nWritten:", highlight=False)
    console.print(f"  {out} ({size})", highlight=False, markup=False, soft_wrap=True)
