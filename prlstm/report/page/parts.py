"""The parts of the page: what each is called, and which commands make its rows."""

from collections.abc import Sequence
from dataclasses import dataclass

from prlstm.files import Row
from prlstm.report.columns import FIGURE3 as FIGURE3_COLUMNS
from prlstm.report.columns import TABLE2, TABLE3, Column
from prlstm.report.page.material import Material
from prlstm.report.rows import CURVES, FIGURE3, GRADIENTS, GROWTH, SCALING, SCORES


@dataclass(frozen=True)
class Part:
    """One part; `name` is its anchor, `command` makes all of it."""

    name: str
    title: str
    command: str
    takes: str


PARTS = {
    part.name: part
    for part in (
        Part("table2", "Table 2: main results", "prlstm reproduce table2",
             "15 tasks, 6 models, 10 seeds, 1M steps"),
        Part("table3", "Table 3: ablation", "prlstm reproduce table3",
             "15 tasks, 7 variants, 10 seeds, 1M steps"),
        Part("others", "Other settings", "prlstm reproduce shipped",
             "the small models that come with the package, one seed each"),
        Part("lengths", "Accuracy over length", "prlstm reproduce table2", "the same rows"),
        Part("training", "Training curves", "prlstm reproduce table2", "the same runs"),
        Part("figure3", "Figure 3: loss over time", "prlstm reproduce figure3 --all",
             "15 tasks, 3 models, 40k steps, one at a time"),
        Part("figure4", "Figure 4: time and memory over length", "prlstm reproduce figure4",
             "lengths 1 to 1,048,576, 1,024 words at once"),
        Part("table1", "Table 1: work, depth, paths, growth", "prlstm reproduce table1",
             "minutes"),
    )
}  # fmt: skip
SMALLER = "prlstm reproduce table2 --models pr_lstm,lstm --budget 20m"
# the parts that have runs of their own, which other parts show too
OF_RUNS = ("table2", "table3", "others")


@dataclass(frozen=True)
class Source:
    """What the rows that a part shows come from: files, how many of their rows, commands."""

    files: tuple[str, ...]
    rows: int
    commands: tuple[str, ...]


def sources(material: Material) -> dict[str, Source]:
    """By part; where several commands make rows of it, those that made some."""
    scores, curves = material[SCORES], material[CURVES]
    commands: dict[str, tuple[str, ...]]
    commands = {name: (part.command,) for name, part in PARTS.items()}
    for name, rows in (("lengths", scores), ("training", curves)):
        made = {_made_by(row) for row in rows}
        commands[name] = tuple(PARTS[part].command for part in OF_RUNS if part in made)
    rows_of: dict[str, dict[str, Sequence[Row]]] = {
        "table2": {SCORES: _of(scores, TABLE2)},
        "table3": {SCORES: _of(scores, TABLE3)},
        "others": {SCORES: [row for row in scores if _made_by(row) == "others"]},
        "lengths": {SCORES: scores},
        "training": {CURVES: curves},
        "figure3": {FIGURE3: _of(material[FIGURE3], FIGURE3_COLUMNS)},
        "figure4": {SCALING: material[SCALING]},
        "table1": {name: material[name] for name in (GROWTH, GRADIENTS)},
    }
    return {
        name: Source(tuple(files), sum(map(len, files.values())), commands[name])
        for name, files in rows_of.items()
    }


def _of(rows: Sequence[Row], columns: Sequence[Column]) -> list[Row]:
    return [row for row in rows if any(column.fits(row) for column in columns)]


def _made_by(row: Row) -> str:
    """The part whose command makes a row; what Tables 2 and 3 share is made for Table 2."""
    for name, columns in (("table2", TABLE2), ("table3", TABLE3)):
        if _of([row], columns):
            return name
    return "others"
