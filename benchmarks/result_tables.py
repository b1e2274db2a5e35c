"""What the rows of `results/` say, as parts of documents: scores, and how far they carry."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from measure import Row
from tables import table

from prlstm import tasks
from prlstm.experiments.catalogue import ALL_TASKS, EXPERIMENTS, SIX_TASKS
from prlstm.experiments.shipping import RECIPES, wanted
from prlstm.report.chart import write_chart
from prlstm.report.columns import FIGURE3, TABLE2, TABLE3, Column
from prlstm.report.curves import loss_over_time
from prlstm.report.lengths import accuracy_over_length
from prlstm.report.numbers import percent, short_count, steps_range
from prlstm.report.score_table import SOLVED_BY_FLOOR, ScoreTable, as_markdown
from prlstm.report.scores import Cell, score_cells

# what the headline compares, the new one first
COMPARED = ("pr_lstm", "lstm")
COLUMNS = [one for name in COMPARED for one in TABLE2 if one.name == name]
# two models of one setting are one column: their tasks tell them apart
SHIPPED = list({str(dict(c.setting)): c for c in (wanted(one).column for one in RECIPES)}.values())
# a cell that is further from the paper's than so many points gets a remark
FAR = 0.03
# what is known of cells that are, beside how many steps and seeds there are: by table, model, task
KNOWN = {
    ("table3", "pr_lstm_1R", "cycle_navigation"): (
        "the paper's Table 2 has 100.0 for the same model, and it does not say why this is less"
    ),
}
EXPLAINED = (
    "Mean accuracy over words of 41 to 500 tokens after training on 1 to 40, in percent, rounded "
    "down: the greatest over our seeds, last weights; beside it the paper's, the greatest of 10 "
    "seeds of 1,000,000 steps, and how many of our seeds reach 90 %. Bold: solved, by one seed at "
    "least. Guessing: without reading the word; †: guessing by position alone passes."
)

WAITING = (
    "The paper's Table 2 has not been run yet. These are the small models that come with the "
    "package, trained on a CPU on words of 1 to 40 tokens: the percentage of right answers, "
    "rounded down, beside what guessing gets."
)


def headline(rows: Sequence[Row]) -> str:
    """Table 2 as far as there are rows, of the models that are compared."""
    cells = score_cells(rows, COLUMNS, ALL_TASKS, "table2")
    if not any(one.tried for one in cells.values()):
        return f"{WAITING}\n\n{shipped_table(rows)}"
    return f"{EXPLAINED}\n\n{side_by_side(cells)}\n{_made_on(cells.values())}"


def side_by_side(cells: Mapping[tuple[str, str], Cell]) -> str:
    """A line for each task: of every model the paper's score, ours, and how many seeds have it."""
    columns = [one for one in COLUMNS if any(cells[task, one.name].tried for task in ALL_TASKS)]
    header = ["task"]
    for column in columns:
        header += [f"{column.title}: paper", "ours", "seeds"]
    lines = []
    for name in ALL_TASKS:
        some = [cells[name, column.name] for column in columns]
        if not any(cell.tried for cell in some):
            continue
        mark = f" {SOLVED_BY_FLOOR}" if some[0].is_floor_enough else ""
        line = [tasks.get(name).paper_name + mark]
        for cell in some:
            assert cell.paper is not None
            most = percent(cell.most) if cell.seeds else "-"
            outcome = cell.outcome if cell.tried else "-"
            line += [percent(cell.paper), f"**{most}**" if cell.is_solved else most, outcome]
        lines.append([*line, percent(some[0].floor)])
    return table([*header, "guessing"], lines)


def reproduction(rows: Sequence[Row]) -> str:
    """Tables 2 and 3 as far as there are rows, of all models."""
    parts = [("Table 2", "table2", TABLE2), ("Table 3", "table3", TABLE3)]
    return "\n".join(f"### {title}\n\n{beside_the_paper(rows, *of)}" for title, *of in parts)


def beside_the_paper(rows: Sequence[Row], name: str, columns: Sequence[Column]) -> str:
    """What a table has of ours, a line for each cell; then where it was made."""
    cells = score_cells(rows, columns, ALL_TASKS, name)
    if not any(cell.tried for cell in cells.values()):
        return f"No rows yet: `prlstm reproduce {name}`.\n"
    seen = ScoreTable("", ALL_TASKS, columns, cells)
    lines = as_markdown(seen, partial(remark, name))
    return f"{lines}\n{_made_on(cells.values())}\n{_near(cells.values())}"


def _near(cells: Iterable[Cell]) -> str:
    """How many cells of each model are near the paper's, and how many there are none of."""
    by_column: dict[str, list[Cell]] = {}
    for cell in cells:
        by_column.setdefault(cell.column.title, []).append(cell)
    near, none = [], []
    for column, some in by_column.items():
        apart = [cell.apart for cell in some if cell.apart is not None]
        if apart:
            near.append(f"{column}: {sum(abs(one) <= FAR for one in apart)} of {len(apart)}")
        if missing := sum(not cell.tried for cell in some):
            none.append(f"{column}: {missing}")
    said = f"Cells within {100 * FAR:.0f} points of the paper's: {', '.join(near) or 'none'}."
    return said + (f" Tasks without rows: {', '.join(none)}." if none else "") + "\n"


def figure3(rows: Sequence[Row]) -> str:
    """How long the steps of Figure 3 took, and the loss at their end."""
    chart = loss_over_time(rows, FIGURE3, SIX_TASKS, "")
    lines = [
        [panel.title, curve.label, f"{curve.x[-1]:.1f}", f"{curve.y[-1]:.2g}"]
        for panel in chart.panels
        for curve in panel.curves
    ]
    if not lines:
        return "No rows yet: `prlstm reproduce figure3`.\n"
    devices = ", ".join(dict.fromkeys(str(row["made_with"]["device"]) for row in rows))
    header = ["task", "model", "seconds of 40,000 steps", "training loss at their end"]
    return f"{table(header, lines, text=(0, 1))}\nMade on {devices}.\n"


def remark(name: str, cell: Cell) -> str:
    """Of a cell that is far from the paper's: how much stands behind it, and what is known."""
    if cell.apart is None or abs(cell.apart) <= FAR:
        return ""
    known = KNOWN.get((name, cell.column.name, cell.task))
    paper = EXPERIMENTS[name]
    behind = (
        f"{steps_range(*cell.steps)} of {short_count(paper.steps)} steps, "
        f"{len(cell.seeds)} of {paper.seeds} seeds"
    )
    return f"{behind}; {known}" if known else behind


def _made_on(cells: Iterable[Cell]) -> str:
    seen = [cell for cell in cells if cell.tried]
    made = {(made["device"], cell.precision) for cell in seen for made in cell.made_with}
    where = ", ".join(f"{device} ({precision})" for device, precision in sorted(made))
    behind = []
    for column in dict.fromkeys(cell.column.title for cell in seen):
        scored = [cell for cell in seen if cell.column.title == column and cell.seeds]
        if not scored:
            continue
        seeds = {len(cell.seeds) for cell in scored}
        steps = {step for cell in scored for step in cell.steps}
        many = " to ".join(str(count) for count in sorted({min(seeds), max(seeds)}))
        many += " seed" if max(seeds) == 1 else " seeds"
        behind.append(f"{column}: {many} of {steps_range(min(steps), max(steps))} steps")
    return f"Made on {where}. {'; '.join(behind)}.\n"


def picture(rows: Sequence[Row], stem: Path) -> list[Path]:
    """Accuracy over length of what the headline shows; nothing is written where that is nothing."""
    for columns in (COLUMNS, SHIPPED):
        cells = score_cells(rows, columns, ALL_TASKS, "table2")
        chart = accuracy_over_length(cells, columns, ALL_TASKS, "")
        if chart.panels:
            # all fifteen tasks are not higher than a screen
            wide = 5 if len(chart.panels) > 9 else chart.columns
            return write_chart(replace(chart, columns=wide), stem)
    return []


def shipped_table(rows: Sequence[Row]) -> str:
    """The models that come with the package: their size, how they were trained, their scores."""
    lines = []
    for recipe in RECIPES:
        one = wanted(recipe)
        (cell,) = score_cells(rows, [one.column], [one.task], "").values()
        if not cell.seeds:
            continue
        best, guessing = cell.best_seed, percent(tasks.get(one.task).floors.best)
        score = f"{percent(best.score)} ({percent(best.low)}-{percent(best.high)})"
        size = str(one.column.setting["hidden_size"])
        lines.append([f"`{one.task}`", size, f"{best.step:,}", score, guessing])
    if not lines:
        return "No rows yet: `prlstm reproduce shipped`.\n"
    header = ["model", "features", "steps", "score over 41 to 500 (95 %)", "guessing"]
    return table(header, lines, text=(0,))
