"""The experiments that train models, as data: which models, on which tasks, how long."""

from collections.abc import Sequence
from dataclasses import dataclass

from prlstm import tasks
from prlstm.report import columns
from prlstm.report.columns import Column
from prlstm.report.rows import CURVES, FIGURE3


@dataclass(frozen=True)
class Experiment:
    """A table of scores, or a figure of curves; `seeds` and `steps` are those of the paper."""

    name: str
    title: str
    columns: Sequence[Column]
    tasks: Sequence[str]
    seeds: int
    steps: int
    curves: str = CURVES
    is_scored: bool = True


# those whose curves the paper shows in its text, the others stand in its appendix
SIX_TASKS = (
    "even_pairs",
    "modular_arithmetic",
    "cycle_navigation",
    "modular_arithmetic_brackets",
    "duplicate_string",
    "missing_duplicate_string",
)
ALL_TASKS = tuple(tasks.names())
EXPERIMENTS = {
    one.name: one
    for one in (
        Experiment("table2", "Table 2: main results", columns.TABLE2, ALL_TASKS, 10, 1_000_000),
        Experiment("table3", "Table 3: ablation", columns.TABLE3, ALL_TASKS, 10, 1_000_000),
        Experiment(
            "figure3", "Figure 3: loss over time", columns.FIGURE3, SIX_TASKS, 1, 40_000,
            curves=FIGURE3, is_scored=False,
        ),
    )
}  # fmt: skip
