"""The command line: a thin skin over the package. One file for each command."""

from prlstm.cli.app import app

__all__ = ["app"]
