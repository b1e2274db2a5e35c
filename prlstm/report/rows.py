"""Rows of results: JSON lines that are only ever added, each with the version of its schema."""

from collections.abc import Callable, Hashable, Iterable
from pathlib import Path

from prlstm.files import Row, append_rows, read_rows

# what a row's `schema` says; another version is another meaning of its numbers
SCHEMA = 1
SCORES, CURVES, FIGURE3 = "scores.jsonl", "curves.jsonl", "figure3.jsonl"
SCALING, GROWTH, GRADIENTS = "scaling.jsonl", "growth.jsonl", "gradients.jsonl"


def read_results(path: Path) -> list[Row]:
    """The rows of a file, none if it is not there; those of another schema are an error."""
    rows = read_rows(path)
    for number, row in enumerate(rows, 1):
        if row.get("schema") != SCHEMA:
            raise ValueError(
                f"{path}, line {number}: schema={row.get('schema')!r:.40}, expected {SCHEMA}: "
                "the row was written by another version of prlstm; use another folder"
            )
    return rows


def append_results(
    path: Path, rows: Iterable[Row], identity: Callable[[Row], Hashable] | None = None
) -> None:
    """Add rows to a file, which is made if it is not there; none whose `identity` it has."""
    # a file with rows of another meaning is left as it is
    read_results(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    append_rows(path, [{"schema": SCHEMA, **row} for row in rows], identity)
