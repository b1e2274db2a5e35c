"""The document of the command line says what the commands say."""

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from prlstm.cli import app

DOCS = Path(__file__).parent.parent.parent / "docs"
MADE: dict[str, Any] = runpy.run_path(str(DOCS / "transcripts.py"))
SHOWN = [shown for section in MADE["SECTIONS"] for shown in section.commands]


@pytest.mark.parametrize("shown", [s for s in SHOWN if s.fixed], ids=lambda shown: shown.line)
def test_what_is_fixed_is_up_to_date(
    shown: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "cli.md").read_text()
    assert MADE["transcript"](shown) in text, "run `make transcripts`"


def names(command: Any) -> Iterator[str]:
    """All commands of a group, and of groups in it."""
    for name, one in getattr(command, "commands", {}).items():
        yield name
        yield from (f"{name} {more}" for more in names(one))


def test_the_help_of_every_command_is_shown() -> None:
    known = {shown.line for shown in SHOWN}
    missing = {f"prlstm {name} --help" for name in names(typer.main.get_command(app))} - known
    assert not missing


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: shown.line)
def test_every_command_is_there(shown: Any) -> None:
    assert f"{shown.line}\n" in (DOCS / "cli.md").read_text()
