"""`prlstm reproduce`: the paper's tables and figures, one command each."""

import typer

from prlstm.cli.reproduce.figure1 import figure1
from prlstm.cli.reproduce.figure4 import figure4
from prlstm.cli.reproduce.shipped import shipped
from prlstm.cli.reproduce.table1 import table1
from prlstm.cli.reproduce.trained import figure3, score_table

app = typer.Typer(
    help="The paper's tables and figures: measured, trained, continued, drawn.",
    no_args_is_help=True,
)
app.command()(table1)
app.command()(
    score_table(
        "table2",
        "Table 2: fifteen tasks, six models, ten seeds, 1,000,000 steps, scored at 41 to 500.\n\n"
        "Stopped at any time, the same command goes on; cells that rows answer are skipped.",
    )
)
app.command()(
    score_table(
        "table3",
        "Table 3, the ablation: fewer features, other numbers of refinements, ReLU cells.\n\n"
        "Stopped at any time, the same command goes on; cells that rows answer are skipped.",
    )
)
app.command()(figure1)
app.command()(figure3)
app.command()(figure4)
app.command()(shipped)
