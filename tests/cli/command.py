"""Commands as a user types them."""

import re
from pathlib import Path

from typer.testing import CliRunner

from prlstm.cli import app

# a model that is trained and scored in a moment
TINY = ["--hidden-size", "4", "--batch-size", "8", "--samples", "64", "--device", "cpu"]


def prlstm(*arguments: str | Path, code: int = 0, stdin: str | bytes | None = None) -> str:
    """What a command says, all of it; its exit code is as expected."""
    environment = {"COLUMNS": "100", "TERM": "dumb"}
    result = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin, env=environment)
    unexpected = result.exception if not isinstance(result.exception, SystemExit) else None
    assert result.exit_code == code, (result.output, unexpected)
    return result.output


def in_a_line(text: str) -> str:
    """A text without the frames and the line breaks of an error."""
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", text).split())
