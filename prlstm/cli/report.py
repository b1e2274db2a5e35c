"""`prlstm report`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from prlstm.cli.given import told
from prlstm.files import write_whole
from prlstm.report.explorer import explorer_section
from prlstm.report.page import build_page


def report(
    results: Annotated[
        Path, typer.Option(help="The folder of rows, as `prlstm reproduce` makes it.")
    ] = Path("results"),
    out: Annotated[Path, typer.Option(help="The page.")] = Path("report.html"),
) -> None:
    """Make one page of HTML of all results: tables, charts, a model to try; needs no network."""
    console = Console()
    with told():
        page = build_page(results, explorer_section()).encode()
        write_whole(out, page)
    size = f"{len(page) / 1e6:.2f} MB" if len(page) >= 1e6 else f"{len(page) / 1e3:.0f} kB"
    console.print("\nWritten:", highlight=False)
    console.print(f"  {out} ({size})", highlight=False, markup=False, soft_wrap=True)
