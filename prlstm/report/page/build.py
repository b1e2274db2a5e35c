"""One page of HTML from a folder of rows: it holds all it needs, and asks no network."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

import prlstm
from prlstm.files import Row
from prlstm.report.columns import FIGURE3 as FIGURE3_COLUMNS
from prlstm.report.columns import Column
from prlstm.report.curves import loss_over_time
from prlstm.report.explorer import ExplorerSection
from prlstm.report.growth import NOTE, OF_PATHS, machines
from prlstm.report.numbers import percent, short_count, steps_range
from prlstm.report.page import headline, scores, speed
from prlstm.report.page.colours import CURVES as CURVE_COLOURS
from prlstm.report.page.colours import DARK, LIGHT
from prlstm.report.page.figures import Figure, figure
from prlstm.report.page.lengths import over_lengths
from prlstm.report.page.material import NOTHING, Material, read_material
from prlstm.report.page.origins import Origins
from prlstm.report.page.parts import PARTS, SMALLER, sources
from prlstm.report.page.scores import level_of
from prlstm.report.page.training import training_charts
from prlstm.report.paper import source
from prlstm.report.reference import reference
from prlstm.report.rows import CURVES, FIGURE3, GRADIENTS, GROWTH, SCALING, SCORES
from prlstm.report.score_table import SOLVED_BY_FLOOR, ScoreTable
from prlstm.report.scores import Cell


@dataclass(frozen=True)
class Scores:
    """A table and the runs behind it."""

    table: ScoreTable
    runs: Sequence[scores.Run]

    @property
    def levels(self) -> list[tuple[str, list[str]]]:
        """The tasks, by where they stand in the hierarchy of languages."""
        return [(level, list(names)) for level, names in groupby(self.table.tasks, level_of)]

    @property
    def known(self) -> list[Cell]:
        """The cells of which there are rows."""
        every = [cell for name in self.table.tasks for cell in self.table.row(name)]
        return [cell for cell in every if cell.seeds or cell.failed]


def build_page(results: Path | None, explorer: ExplorerSection | None = None) -> str:
    """The page of the rows in a folder; without a folder, one of no rows."""
    material = read_material(results) if results is not None else NOTHING
    origins = Origins(material.files)
    theme = _template_text("theme.js")
    scripts = [theme] + ([explorer.script] if explorer is not None else [])
    context: dict[str, Any] = {
        "version": prlstm.__version__,
        "material": material,
        "origins": origins,
        "parts": PARTS,
        "sources": sources(material),
        "smaller": SMALLER,
        "paper_source": source(),
        "explorer": explorer,
        "theme": theme,
        "policy": _policy(scripts),
        "light": LIGHT,
        "dark": DARK,
        "colours": CURVE_COLOURS,
    }
    context |= _of_scores(material[SCORES], origins) | _of_speed(material, origins)
    context |= _of_training(material, context["others"], origins)
    return _environment().get_template("page.html").render(context)


def _of_scores(rows: Sequence[Row], origins: Origins) -> dict[str, Any]:
    """Headline, tables and accuracy over length."""
    second, third, elsewhere = scores.table2(rows), scores.table3(rows), scores.others(rows)
    return {
        "sentences": headline.sentences(second, elsewhere),
        "tallies": headline.tallies(second),
        "tables": {
            name: Scores(table, _runs_of(rows, table.columns))
            for name, table in (("table2", second), ("table3", third))
        },
        "others": elsewhere,
        "other_runs": scores.runs_of(rows, lambda row: not scores.is_papers(row)),
        "lengths": [
            figure(name, chart, origins.of_cells(cells))
            for name, chart, cells in over_lengths([second, third], elsewhere)
        ],
    }


def _runs_of(rows: Sequence[Row], columns: Sequence[Column]) -> list[scores.Run]:
    return scores.runs_of(rows, lambda row: any(column.fits(row) for column in columns))


def _of_training(material: Material, elsewhere: Sequence[Cell], origins: Origins) -> dict[str, Any]:
    """Curves over steps, and over time."""
    figures = [
        figure(name, chart, origins.numbers(rows))
        for name, chart, rows in training_charts(material[CURVES], elsewhere)
    ]
    rows = [r for r in material[FIGURE3] if any(column.fits(r) for column in FIGURE3_COLUMNS)]
    timed = scores.known_tasks(rows)
    title = "Training loss over wall-clock time"
    chart = loss_over_time(rows, FIGURE3_COLUMNS, timed, title)
    over_time = [figure("figure3-loss", chart, origins.numbers(rows))] if timed else []
    return {"training": figures, "over_time": over_time}


def _of_speed(material: Material, origins: Origins) -> dict[str, Any]:
    growth, gradients = material[GROWTH], material[GRADIENTS]
    scaling: list[Figure] = speed.scaling_figures(material[SCALING], origins)
    return {
        "scaling": scaling,
        "reference": reference(),
        "growth_lines": speed.growth_lines(growth),
        "machines": machines(growth),
        "growth": speed.growth_figures(growth, gradients, origins),
        "growth_notes": (NOTE, OF_PATHS),
    }


def _environment() -> Environment:
    """Templates whose every value is escaped."""
    environment = Environment(
        loader=PackageLoader("prlstm.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "percent": percent,
        "steps": lambda ends: steps_range(*ends),
        "short": short_count,
        "task": scores.task_title,
        "setting": scores.setting_said,
    }
    environment.globals |= {
        "floor_of": scores.floor_of,
        "paper_of": scores.paper_of,
        "dagger": SOLVED_BY_FLOOR,
    }
    return environment


def _policy(scripts: Sequence[str]) -> str:
    """What a browser may load and run: these very scripts, and nothing from anywhere."""
    hashes = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
    allowed = " ".join(f"'sha256-{one}'" for one in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _template_text(name: str) -> str:
    return (Path(__file__).parent / "templates" / name).read_text()
