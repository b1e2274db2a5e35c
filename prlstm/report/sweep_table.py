"""The cells of a sweep, and all others that rows tell of, as a file."""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from prlstm import tasks
from prlstm.files import Row, write_whole
from prlstm.report.columns import PRECISION, Column, precision_of
from prlstm.report.scores import Cell, score_cells
from prlstm.tasks.floors import floors_at

HEADER = (
    "task", "model", "setting", "precision", "lengths", "max", "ci_low", "ci_high", "median",
    "solved", "tried", "seeds", "failed", "steps_min", "steps_max", "floor",
)  # fmt: skip
# as first and last of those that follow each other
Ranges = list[list[int]]


@dataclass(frozen=True)
class Line:
    """A cell, the lengths that it was scored on, and what guessing gets there.

    Of a cell whose every run failed nobody knows the lengths, nor what guessing would get.
    """

    cell: Cell
    lengths: Ranges
    floor: float | None


def sweep_lines(
    rows: Sequence[Row], cells: Sequence[tuple[str, Column]], lengths: Ranges
) -> list[Line]:
    """The lines of some cells, task by task as they come; of a task, what is best comes first."""
    by_kind = _by_kind(rows)
    names = list(dict.fromkeys(task for task, _ in cells))
    floors = {task: _floor(task, lengths) for task in names}
    lines = [
        Line(_cell(by_kind.get(_kind_of(*one), []), *one, lengths), lengths, floors[one[0]])
        for one in cells
    ]
    return sorted(lines, key=lambda line: (names.index(line.cell.task), _best_first(line.cell)))


def other_lines(rows: Sequence[Row], lines: Sequence[Line]) -> list[Line]:
    """A line for all that rows tell of and that has none yet, as they come."""
    there = {(_kind_of(line.cell.task, line.cell.column), str(line.lengths)) for line in lines}
    known = {kind for kind, _ in there}
    found = []
    for kind, some in _by_kind(rows).items():
        first = some[0]
        column = Column(first["model"], first["model"], first["model"], _own(first), kind[-1])
        scored = {str(row["lengths"]): row["lengths"] for row in some if not row.get("failed")}
        for said, lengths in scored.items():
            if (kind, said) not in there:
                cell = _cell(some, first["task"], column, lengths)
                found.append(Line(cell, lengths, _floor(first["task"], lengths)))
        if not scored and kind not in known:
            found.append(Line(_cell(some, first["task"], column, []), [], None))
    return found


def write_sweep(lines: Iterable[Line], path: Path) -> Path:
    """Write CSV; shares are between 0 and 1."""
    text = io.StringIO()
    written = csv.writer(text, lineterminator="\n")
    written.writerow(HEADER)
    for line in lines:
        cell = line.cell
        setting = " ".join(f"{name}={value}" for name, value in cell.column.setting.items())
        lengths = " ".join(
            f"{first}:{last}" if first < last else f"{first}" for first, last in line.lengths
        )
        parts: list[object] = [cell.task, cell.column.model, setting, cell.precision, lengths]
        if cell.seeds:
            best = cell.best_seed
            parts += [f"{share:.6f}" for share in (cell.most, best.low, best.high, cell.median)]
        else:
            parts += [""] * 4
        steps = cell.steps if cell.seeds else ("", "")
        parts += [cell.succeeded, cell.tried, len(cell.seeds), len(cell.failed), *steps]
        written.writerow([*parts, "" if line.floor is None else f"{line.floor:.4f}"])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.getvalue().encode())
    return path


Kind = tuple[str, str, str, str]


def _by_kind(rows: Iterable[Row]) -> dict[Kind, list[Row]]:
    """Rows that differ in their seeds, lengths, and how far they went."""
    found: dict[Kind, list[Row]] = {}
    for row in rows:
        own = json.dumps(_own(row), sort_keys=True)
        found.setdefault((row["task"], row["model"], own, precision_of(row)), []).append(row)
    return found


def _kind_of(task: str, column: Column) -> Kind:
    own = json.dumps(dict(column.setting), sort_keys=True)
    assert column.precision is not None
    return task, column.model, own, column.precision


def _own(row: Row) -> Row:
    return {name: value for name, value in row["setting"].items() if name != PRECISION}


def _cell(rows: Sequence[Row], task: str, column: Column, lengths: Ranges) -> Cell:
    return score_cells(rows, [column], [task], "", lengths)[task, column.name]


def _floor(task: str, lengths: Ranges) -> float | None:
    """What guessing gets; nobody knows of a task that is not there."""
    if task not in tasks.names():
        return None
    every = [length for first, last in lengths for length in range(first, last + 1)]
    return floors_at(tasks.get(task), every).best


def _best_first(cell: Cell) -> float:
    return -cell.most if cell.seeds else 1.0
