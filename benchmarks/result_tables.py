"""What the rows of `results/` say, as parts of documents: scores, and how far they carry."""

from collections.abc import Sequence
from pathlib import Path

from measure import Row
from tables import table

from prlstm import tasks
from prlstm.experiments.catalogue import ALL_TASKS
from prlstm.experiments.shipping import RECIPES, wanted
from prlstm.report.chart import write_chart
from prlstm.report.columns import TABLE2, TABLE3, Column
from prlstm.report.lengths import accuracy_over_length
from prlstm.report.numbers import percent
from prlstm.report.score_table import ScoreTable, as_markdown
from prlstm.report.scores import score_cells

# what the headline compares, the new one first
COMPARED = ("pr_lstm", "lstm")
COLUMNS = [one for name in COMPARED for one in TABLE2 if one.name == name]
# two models of one setting are one column: their tasks tell them apart
SHIPPED = list({str(dict(c.setting)): c for c in (wanted(one).column for one in RECIPES)}.values())
EXPLAINED = (
    "Mean accuracy over words of 41 to 500 tokens after training on 1 to 40, in percent, rounded "
    "down: the greatest over our seeds, last weights. The paper's are the greatest of 10 seeds of "
    "1,000,000 steps. Bold: solved, 90 % or more. Floor: what guessing gets; †: guessing by "
    "position alone passes."
)

WAITING = (
    "The paper's Table 2 has not been run yet. These are the small models that come with the "
    "package, trained on a CPU on words of 1 to 40 tokens: the percentage of right answers, "
    "rounded down, beside what guessing gets."
)


def headline(rows: Sequence[Row]) -> str:
    """Table 2 as far as there are rows, of the models that are compared."""
    if not any(one.tried for one in score_cells(rows, COLUMNS, ALL_TASKS, "table2").values()):
        return f"{WAITING}\n\n{shipped_table(rows)}"
    return f"{EXPLAINED}\n\n{beside_the_paper(rows, 'table2', COLUMNS)}"


def reproduction(rows: Sequence[Row]) -> str:
    """Tables 2 and 3 as far as there are rows, of all models."""
    parts = [("Table 2", "table2", TABLE2), ("Table 3", "table3", TABLE3)]
    return "\n".join(f"### {title}\n\n{beside_the_paper(rows, *of)}" for title, *of in parts)


def beside_the_paper(rows: Sequence[Row], name: str, columns: Sequence[Column]) -> str:
    """What a table has of ours, a line for each cell; then where it was made."""
    cells = score_cells(rows, columns, ALL_TASKS, name)
    seen = [cell for cell in cells.values() if cell.tried]
    if not seen:
        return f"No rows yet: `prlstm reproduce {name}`.\n"
    made = {(made["device"], cell.precision) for cell in seen for made in cell.made_with}
    where = ", ".join(f"{device} ({precision})" for device, precision in sorted(made))
    return as_markdown(ScoreTable("", ALL_TASKS, columns, cells)) + f"\nMade on {where}.\n"


def picture(rows: Sequence[Row], stem: Path) -> list[Path]:
    """Accuracy over length of what the headline shows; nothing is written where that is nothing."""
    for columns in (COLUMNS, SHIPPED):
        cells = score_cells(rows, columns, ALL_TASKS, "table2")
        chart = accuracy_over_length(cells, columns, ALL_TASKS, "")
        if chart.panels:
            return write_chart(chart, stem)
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
