"""Rows of results: JSON lines that are only ever added, each with the version of its schema."""

from collections.abc import Callable, Hashable, Iterable
from pathlib import Path

from prlstm.files import Row, append_rows, read_rows
from prlstm.report.fields import (
    CURVES,
    FIGURE3,
    GRADIENTS,
    GROWTH,
    SCALING,
    SCORES,
    what_is_wrong,
)

__all__ = [
    "CURVES",
    "FIGURE3",
    "GRADIENTS",
    "GROWTH",
    "SCALING",
    "SCORES",
    "append_results",
    "read_results",
]

# what a row's `schema` says; another version is another meaning of its numbers
SCHEMA = 1


def read_results(path: Path) -> list[Row]:
    """The rows of a file, none if it is not there; one that holds something else is an error."""
    rows = read_rows(path)
    for number, row in enumerate(rows, 1):
        if row.get("schema") != SCHEMA:
            raise ValueError(
                f"{path}, line {number}: schema={row.get('schema')!r:.40}, expected {SCHEMA}: "
                "the row was written by another version of prlstm; use another folder"
            )
        wrong = what_is_wrong(path.name, row)
        if wrong is not None:
            raise ValueError(f"{path}, line {number}: {wrong}")
    return rows


def append_results(
    path: Path, rows: Iterable[Row], identity: Callable[[Row], Hashable] | None = None
) -> None:
    """Add rows to a file, which is made if it is not there; none whose `identity` it has."""
    # a file with rows of another meaning is left as it is
    read_results(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    append_rows(path, [{"schema": SCHEMA, **row} for row in rows], identity)
