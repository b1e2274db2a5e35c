"""Tables 2 and 3, and the runs of other settings, as the page shows them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from prlstm import tasks
from prlstm.files import Row
from prlstm.report.columns import PRECISION, TABLE2, TABLE3, Column
from prlstm.report.paper import tables
from prlstm.report.score_table import LEVELS, ScoreTable
from prlstm.report.scores import Cell, score_cells

TITLES = {column.model: column.title for column in TABLE2} | {
    "pr_rnn": "PR-RNN", "pr_gru": "PR-GRU", "gru": "GRU", "transformer": "Transformer (whole)",
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One seed of a cell, as a row tells of it."""

    name: str
    task: str
    title: str
    setting: str
    seed: int
    step: int
    score: float | None
    failed: str
    made_with: Mapping[str, Any]


def table2(rows: Sequence[Row]) -> ScoreTable:
    """The main results."""
    names = tasks.names()
    return ScoreTable("Table 2", names, TABLE2, score_cells(rows, TABLE2, names, "table2"))


def table3(rows: Sequence[Row]) -> ScoreTable:
    """The ablation."""
    names = tasks.names()
    return ScoreTable("Table 3", names, TABLE3, score_cells(rows, TABLE3, names, "table3"))


def others(rows: Sequence[Row]) -> list[Cell]:
    """Runs whose settings are not the paper's: smaller models, trials. In the order of the tasks.

    The paper's score beside them is that of the same model at its size.
    """
    columns: dict[str, Column] = {}
    for row in rows:
        if not is_papers(row):
            column = _column(row)
            columns.setdefault(column.name, column)
    names = {row["task"]: None for row in rows}
    known = tasks.names()
    order = sorted(names, key=lambda name: known.index(name) if name in known else len(known))
    cells = score_cells(rows, list(columns.values()), order, "")
    found = [cells[name, column] for name in order for column in columns]
    return [cell for cell in found if cell.seeds or cell.failed]


def is_papers(row: Row) -> bool:
    """Whether a row is of one of the paper's tables."""
    return any(column.fits(row) for column in (*TABLE2, *TABLE3))


def _column(row: Row) -> Column:
    own = {name: value for name, value in row["setting"].items() if name != PRECISION}
    said = setting_said(own)
    title = title_of(row["model"])
    return Column(f"{row['model']} {said}", title, row["model"], own)


def setting_said(setting: dict[str, object]) -> str:
    """Settings that are not as usual, in words."""
    return ", ".join(f"{name} {value}" for name, value in setting.items())


def title_of(model: str) -> str:
    """What the page calls a model."""
    return TITLES.get(model, model)


def task_title(name: str) -> str:
    """What the page calls a task; one of somebody's own has no other name."""
    return tasks.get(name).paper_name if name in tasks.names() else name


def floor_of(name: str) -> float | None:
    """What guessing scores, where it is known."""
    return tasks.get(name).floors.best if name in tasks.names() else None


def paper_of(cell: Cell) -> float | None:
    """What the paper says of the model of a cell, at the paper's size."""
    if cell.paper is not None:
        return cell.paper
    percent = tables()["table2"].get(cell.column.model, {}).get(cell.task)
    return None if percent is None else percent / 100


def runs_of(rows: Iterable[Row], chosen: Callable[[Row], bool]) -> list[Run]:
    """Every chosen row of a score or of a failure, those of best weights not."""
    return [
        Run(
            str(row["run"]), task_title(row["task"]), title_of(row["model"]),
            setting_said(row["setting"]), row["seed"], row["step"], row.get("score"),
            str(row.get("failed", "")), row["made_with"],
        )
        for row in rows
        if row["weights"] in ("last", "none") and chosen(row)
    ]  # fmt: skip


def known_tasks(rows: Iterable[Row]) -> list[str]:
    """The tasks of the paper that rows tell of, in the paper's order."""
    there = {row["task"] for row in rows}
    return [name for name in tasks.names() if name in there]


def level_of(name: str) -> str:
    """Where a task stands in the hierarchy of languages."""
    return LEVELS[tasks.get(name).level]


def best_of_models(cells: Iterable[Cell]) -> dict[tuple[str, str], Cell]:
    """By task and model the cell of the greatest score, of the paper's tasks."""
    best: dict[tuple[str, str], Cell] = {}
    for cell in cells:
        key = cell.task, cell.column.model
        if not cell.seeds or cell.task not in tasks.names():
            continue
        if key not in best or cell.most > best[key].most:
            best[key] = cell
    return best


def named_by_model(
    cells: Mapping[tuple[str, str], Cell],
) -> Iterator[tuple[str, dict[tuple[str, str], Cell], list[Column]]]:
    """Task by task its cells and columns, which are called by their models: settings are many."""
    for task in dict.fromkeys(task for task, _ in cells):
        mine = [cell for (name, _), cell in cells.items() if name == task]
        columns = [replace(cell.column, title=title_of(cell.column.model)) for cell in mine]
        yield task, {(task, cell.column.name): cell for cell in mine}, columns
