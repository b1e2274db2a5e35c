"""`python -m prlstm` is the command `prlstm`."""

from prlstm.cli import app

# processes that it starts import it as well
if __name__ == "__main__":
    app(prog_name="prlstm")
