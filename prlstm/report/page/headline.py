"""What the rows say in a few sentences: nothing that no row holds."""

from collections.abc import Sequence
from dataclasses import dataclass

from prlstm import tasks
from prlstm.report.columns import TABLE2, Column
from prlstm.report.numbers import percent, steps_range
from prlstm.report.score_table import SOLVED_BY_FLOOR, ScoreTable
from prlstm.report.scores import SUCCESS, Cell

(OURS,) = (column for column in TABLE2 if column.name == "pr_lstm")
SOLVED = f"{100 * SUCCESS:g} % or more at lengths 41 to 500"


@dataclass(frozen=True)
class Tally:
    """Of how many tasks a model is above the mark: in the paper, and here of those scored."""

    title: str
    paper: int
    solved: int
    scored: int
    of: int


def is_solved_in_paper(cell: Cell) -> bool:
    """By the same mark as ours."""
    return cell.paper is not None and cell.paper >= SUCCESS


def tallies(table: ScoreTable) -> list[Tally]:
    """One for each model of the table."""
    return [_tally(column, [table.cells[name, column.name] for name in table.tasks])
            for column in table.columns]  # fmt: skip


def _tally(column: Column, cells: Sequence[Cell]) -> Tally:
    return Tally(
        column.title,
        sum(map(is_solved_in_paper, cells)),
        sum(cell.is_solved for cell in cells),
        sum(bool(cell.seeds) for cell in cells),
        len(cells),
    )


def sentences(table: ScoreTable, elsewhere: Sequence[Cell]) -> list[str]:
    """About PR-LSTM in Table 2; `elsewhere` are runs of other settings."""
    cells = [table.cells[name, OURS.name] for name in table.tasks]
    scored = [cell for cell in cells if cell.seeds]
    if scored:
        return _of_scored(cells, scored)
    said = ["No PR-LSTM of the paper's settings has been scored yet."]
    mine = [cell for cell in elsewhere if cell.seeds and cell.column.model == OURS.model]
    solved = list(dict.fromkeys(cell.task for cell in mine if cell.is_solved))
    if mine:
        count = len({cell.task for cell in mine})
        said.append(
            f"With other settings, mostly smaller, {len(solved)} of {count} "
            f"{_tasks(count)} tried {_are(len(solved))} solved{_listed(solved)}: at least one "
            f"seed answers {SOLVED}. {_made(mine)}"
        )
    return said


def _of_scored(cells: Sequence[Cell], scored: Sequence[Cell]) -> list[str]:
    wanted = [cell for cell in cells if is_solved_in_paper(cell)]
    solved = [cell for cell in wanted if cell.is_solved]
    said = [
        f"PR-LSTM solves {len(solved)} of the {len(wanted)} tasks that it solves in the paper: at "
        f"least one seed, trained on words of 1 to 40 tokens, answers {SOLVED}."
    ]
    missed = [cell for cell in wanted if cell.seeds and not cell.is_solved]
    if missed:
        each = ", ".join(f"{_name(cell.task)} ({percent(cell.most)} %)" for cell in missed)
        said.append(f"Not solved: {each}.")
    failed = [_name(cell.task) for cell in wanted if cell.failed and not cell.seeds]
    if failed:
        said.append(f"Without a score, as every seed failed: {', '.join(failed)}.")
    absent = [_name(cell.task) for cell in wanted if not cell.tried]
    if absent:
        said.append(f"Not scored yet: {', '.join(absent)}.")
    beyond = [_name(cell.task) for cell in scored if cell.is_solved and cell not in wanted]
    if beyond:
        said.append(f"Solved here but not in the paper: {', '.join(beyond)}.")
    guessed = [_name(cell.task) for cell in solved if cell.is_floor_enough]
    if guessed:
        said.append(f"{', '.join(guessed)} {SOLVED_BY_FLOOR} is passed by guessing alone.")
    said.append(_made(scored))
    return said


def _made(cells: Sequence[Cell]) -> str:
    """How much stands behind it, and where it was computed."""
    runs = sum(len(cell.seeds) for cell in cells)
    failed = sum(len(cell.failed) for cell in cells)
    steps = [step for cell in cells for step in cell.steps]
    devices = dict.fromkeys(str(made.get("device")) for cell in cells for made in cell.made_with)
    return (
        f"Behind this stand{'s' * (runs == 1)} {runs:,} run{'s' * (runs != 1)} of "
        f"{steps_range(min(steps), max(steps))} steps (the paper: 1M) on {', '.join(devices)}"
        f"{f'; {failed:,} more failed' if failed else ''}."
    )


def _listed(names: Sequence[str]) -> str:
    return f" ({', '.join(map(_name, names))})" if names else ""


def _name(task: str) -> str:
    return tasks.get(task).paper_name if task in tasks.names() else task


def _tasks(count: int) -> str:
    return "task" if count == 1 else "tasks"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
