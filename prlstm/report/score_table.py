"""A table of scores: as CSV, as LaTeX, as Markdown, as a picture."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from prlstm import tasks
from prlstm.files import write_whole
from prlstm.report.columns import Column
from prlstm.report.figures import GREY, save_figure
from prlstm.report.latex import escape
from prlstm.report.numbers import percent, steps_range
from prlstm.report.scores import Cell

SOLVED_BY_FLOOR = "†"
LEVELS = {"R": "regular", "DCF": "deterministic context-free", "CS": "context-sensitive"}
# inches of a cell of the picture
WIDTH, HEIGHT = 1.35, 0.52
HEADER = (
    "level", "task", "model", "paper", "max", "ci_low", "ci_high", "median", "solved", "tried",
    "seeds", "failed", "chance_low", "chance_high", "steps_min", "steps_max", "samples", "floor",
    "is_solved", "floor_is_enough", "best_weights_max", "precision", "device", "commit",
)  # fmt: skip


@dataclass(frozen=True)
class ScoreTable:
    """Cells by task and column."""

    title: str
    tasks: Sequence[str]
    columns: Sequence[Column]
    cells: Mapping[tuple[str, str], Cell]

    def row(self, task: str) -> list[Cell]:
        """The cells of a task, by column."""
        return [self.cells[task, column.name] for column in self.columns]


def write_table(table: ScoreTable, stem: Path) -> list[Path]:
    """Write `stem` with the endings csv, tex, svg and png."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    made = {"csv": as_csv(table), "tex": as_latex(table)}
    paths = []
    for ending, text in made.items():
        paths.append(stem.with_name(f"{stem.name}.{ending}"))
        write_whole(paths[-1], text.encode())
    return [*paths, *save_figure(draw(table), stem)]


def as_csv(table: ScoreTable) -> str:
    """A line for each cell of which a seed was tried; shares are between 0 and 1.

    `seeds` are those with a score: `tried` less `failed`.
    """
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(HEADER)
    for task in table.tasks:
        lines.writerows(_csv_line(cell) for cell in table.row(task) if cell.tried)
    return text.getvalue()


def _csv_line(cell: Cell) -> list[object]:
    best = [one.best for one in cell.seeds if one.best is not None]
    shares, steps, samples = [""] * 4, ["", ""], ""
    if cell.seeds:
        some = (cell.most, cell.best_seed.low, cell.best_seed.high, cell.median)
        shares, steps = [f"{share:.6f}" for share in some], [str(one) for one in cell.steps]
        samples = str(min(one.samples for one in cell.seeds))
    return [
        tasks.get(cell.task).level, cell.task, cell.column.name,
        "" if cell.paper is None else f"{cell.paper:.4f}",
        *shares, cell.succeeded, cell.tried, len(cell.seeds), len(cell.failed),
        *(f"{share:.4f}" for share in cell.chance), *steps, samples, f"{cell.floor:.4f}",
        int(cell.is_solved),
        int(cell.is_floor_enough), f"{max(best):.6f}" if best else "", cell.precision,
        "; ".join(dict.fromkeys(str(made.get("device")) for made in cell.made_with)),
        "; ".join(dict.fromkeys(str(made.get("commit")) for made in cell.made_with)),
    ]  # fmt: skip


def explanation(table: ScoreTable) -> str:
    """What the numbers and marks mean, in a few sentences."""
    return (
        "Each cell: the greatest score over seeds (mean accuracy over lengths 41 to 500, last "
        "weights), in bold if it is 90 % or more; below it the median of these scores, how many "
        "seeds reached 90 % of how many that were tried, how many of these failed and so have no "
        "score, and after how many steps; behind it the paper's. Percentages are rounded down. "
        f"{SOLVED_BY_FLOOR}: guessing by position alone passes."
    )


def as_latex(table: ScoreTable) -> str:
    """The table for booktabs; the needed packages are named in its first line."""
    columns = "l" + "l" + "r" + "r" * len(table.columns)
    head = " & ".join(escape(column.title) for column in table.columns)
    lines = [
        r"% needs \usepackage{booktabs} and \usepackage{xcolor}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        rf"Level & Task & Floor & {head} \\",
    ]
    level = None
    for name in table.tasks:
        task = tasks.get(name)
        lines += [r"\midrule"] if task.level != level else []
        first = task.level if task.level != level else ""
        level = task.level
        cells = table.row(name)
        mark = r"$^\dagger$" if cells[0].is_floor_enough else ""
        floor = percent(cells[0].floor)
        most = " & ".join(map(_latex_most, cells))
        behind = " & ".join(map(_latex_behind, cells))
        lines.append(rf"{first} & {escape(task.paper_name)}{mark} & {floor} & {most} \\")
        if any(cell.tried for cell in cells):
            lines.append(rf" & & & {behind} \\[2pt]")
    lines += [r"\bottomrule", r"\end{tabular}", f"% {_plain(explanation(table))}"]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    return text.replace(SOLVED_BY_FLOOR, "dagger").encode("ascii", "replace").decode()


def _latex_most(cell: Cell) -> str:
    paper = "" if cell.paper is None else rf" \textcolor{{gray}}{{({percent(cell.paper)})}}"
    if not cell.seeds:
        return f"--{paper}"
    most = percent(cell.most)
    return (rf"\textbf{{{most}}}" if cell.is_solved else most) + paper


def _latex_behind(cell: Cell) -> str:
    return rf"\scriptsize {_behind(cell)}" if cell.tried else ""


def _behind(cell: Cell) -> str:
    """Median, seeds and steps."""
    if not cell.seeds:
        return cell.outcome
    return f"{percent(cell.median)}, {cell.outcome}, {steps_range(*cell.steps)}"


def as_markdown(table: ScoreTable, remark: Callable[[Cell], str]) -> str:
    """A line for each cell that was tried: the paper's score, ours, what stands behind it."""
    lines = [
        "| task | model | paper | ours (max) | points apart | median | solved | steps | floor | "
        "remark |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    for name in table.tasks:
        cells = [cell for cell in table.row(name) if cell.tried]
        lines += [f"| {' | '.join([*_markdown_cells(cell), remark(cell)])} |" for cell in cells]
    return "\n".join(lines) + "\n"


def _markdown_cells(cell: Cell) -> list[str]:
    mark = f" {SOLVED_BY_FLOOR}" if cell.is_floor_enough else ""
    paper = "" if cell.paper is None else percent(cell.paper)
    ours = ["-", "", "-", cell.outcome, "-"]
    if cell.seeds:
        most = percent(cell.most)
        ours = [
            f"**{most}**" if cell.is_solved else most,
            # a zero has no sign of its own
            "" if cell.apart is None else f"{round(100 * cell.apart, 1) + 0.0:+.1f}",
            percent(cell.median), cell.outcome, steps_range(*cell.steps),
        ]  # fmt: skip
    name = tasks.get(cell.task).paper_name + mark
    return [name, cell.column.title, paper, *ours, percent(cell.floor)]


def draw(table: ScoreTable) -> Figure:
    """The table as a picture: the better, the darker."""
    rows, columns = len(table.tasks), len(table.columns)
    left, above = 2.6, 0.6
    figure = Figure(figsize=(left + WIDTH * columns + 0.2, above + HEIGHT * (rows + 1) + 0.75))
    axes = figure.subplots()
    figure.subplots_adjust(0, 0, 1, 1)
    axes.set_xlim(-left / WIDTH, columns + 0.15)
    axes.set_ylim(rows + 1.35, -1 - above / HEIGHT)
    axes.axis("off")
    axes.text(-left / WIDTH + 0.08, -1.35, table.title, fontsize=11, weight="bold")
    for place, column in enumerate(table.columns):
        axes.text(place + 0.5, -0.25, column.title, ha="center", weight="bold", fontsize=9)
    shades = colormaps["Blues"]
    level = None
    for line, name in enumerate(table.tasks):
        task = tasks.get(name)
        if task.level != level:
            axes.plot([-left / WIDTH, columns], [line, line], color=GREY, linewidth=0.8)
            level = task.level
        cells = table.row(name)
        mark = f" {SOLVED_BY_FLOOR}" if cells[0].is_floor_enough else ""
        axes.text(-0.08, line + 0.42, task.paper_name + mark, ha="right", va="center", fontsize=9)
        floor = f"{task.level}, floor {percent(cells[0].floor)}"
        axes.text(-0.08, line + 0.78, floor, ha="right", va="center", fontsize=6.5, color=GREY)
        for place, cell in enumerate(cells):
            paper = "" if cell.paper is None else f"paper {percent(cell.paper)}"
            if not cell.seeds:
                if cell.tried:
                    axes.text(place + 0.5, line + 0.3, cell.outcome, ha="center", va="center",
                              fontsize=6.5)  # fmt: skip
                axes.text(place + 0.5, line + 0.6, paper, ha="center", fontsize=6.5, color=GREY)
                continue
            # from the floor up: what is worth nothing is white
            share = max(0.0, (cell.most - cell.floor) / max(1e-9, 1 - cell.floor))
            colour = shades(0.85 * share)
            text = "white" if share > 0.75 else "black"
            axes.add_patch(Rectangle((place + 0.02, line + 0.03), 0.96, 0.94, color=colour))
            bold = "bold" if cell.is_solved else "normal"
            axes.text(place + 0.5, line + 0.3, percent(cell.most), ha="center", va="center",
                      fontsize=9.5, weight=bold, color=text)  # fmt: skip
            # in two lines: what all seeds say, then what it took, and the paper's
            told = (f"{percent(cell.median)}, {cell.outcome}",
                    ", ".join(filter(None, (steps_range(*cell.steps), paper))))  # fmt: skip
            for below, words in zip((0.58, 0.82), told, strict=True):
                axes.text(place + 0.5, line + below, words, ha="center", va="center",
                          fontsize=6.5, color=text)  # fmt: skip
    axes.plot([-left / WIDTH, columns], [rows, rows], color=GREY, linewidth=0.8)
    note = (
        "max over seeds; below it median, seeds of 90 % or more of those tried (failed ones have "
        "no score); steps, the paper's score.\n"
        f"Bold: solved. Colour: from the floor to 100 %. {SOLVED_BY_FLOOR} the floor alone passes."
    )
    axes.text(-left / WIDTH + 0.08, rows + 0.5, note, fontsize=7, color=GREY)
    return figure
