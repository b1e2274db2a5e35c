"""`python -m prlstm` is the command `prlstm`."""

from prlstm.cli import app

app(prog_name="prlstm")
