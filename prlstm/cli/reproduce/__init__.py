"""`prlstm reproduce`: the paper's tables and figures, one command each."""

import typer

app = typer.Typer(
    help="The paper's tables and figures: measured, trained, continued, drawn.",
    no_args_is_help=True,
)
