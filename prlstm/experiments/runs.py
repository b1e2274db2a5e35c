"""Runs as an experiment wants them: trained, scored, and kept as rows of results."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from prlstm.environment import environment
from prlstm.files import Row
from prlstm.report.columns import Column
from prlstm.report.rows import CURVES, SCORES, append_results, read_results
from prlstm.report.scores import packed_totals
from prlstm.training import Event, Report, Request, RunConfig, RunFolder, score, train
from prlstm.training.events import Stopped
from prlstm.training.runs import METRICS
from prlstm.training.scoring import kinds_of_weights

# points of a curve in one row
MOST_POINTS = 200
COLUMNS_OF_A_CURVE = ("seconds", "loss", "accuracy")


@dataclass(frozen=True)
class Wanted:
    """A cell of a table: a task, a column, and the seeds that are to be trained, together."""

    task: str
    column: Column
    configs: tuple[RunConfig, ...]

    @staticmethod
    def of(task: str, column: Column, seeds: Sequence[int], precision: str) -> "Wanted":
        """The cell of a column, computed in some precision."""
        own = {**column.setting, "precision": precision}
        first = RunConfig.from_own(task, column.model, own)
        return Wanted(task, column, tuple(first.with_seed(seed) for seed in seeds))

    @property
    def name(self) -> str:
        """As a person calls it."""
        return f"{self.column.title} on {self.task}"


@dataclass(frozen=True)
class Store:
    """Where rows are kept, and where runs are."""

    results: Path
    runs: Path

    def scores(self) -> list[Row]:
        """All rows of scores."""
        return read_results(self.results / SCORES)

    def missing(self, wanted: Wanted, request: Request) -> list[RunConfig]:
        """Those runs of a cell that no row answers: none that went so far, and none that failed."""
        answered = {
            row["run"]
            for row in self.scores()
            if row["weights"] == "none"
            or (
                row["weights"] == "last"
                and row["step"] >= request.steps
                and row["samples"] >= request.samples
            )
        }
        return [config for config in wanted.configs if config.name not in answered]


def make(
    wanted: Wanted, request: Request, store: Store, device: torch.device, report: Report
) -> None:
    """Train and score what is missing of a cell, and write rows of it.

    A run whose loss is no number leaves a row that says so; it is not tried again.
    """
    failed: dict[RunFolder, str] = {}

    def told(event: Event) -> None:
        if isinstance(event, Stopped) and event.failed:
            failed[event.folder] = event.why
        report(event)

    missing = store.missing(wanted, request)
    if not missing:
        return
    try:
        train(missing, request, store.runs, device=device, report=told)
    except FloatingPointError:
        # told already, seed by seed; the others are done
        assert failed
    folders = [RunFolder(store.runs / config.name, config) for config in missing]
    whole = [folder for folder in folders if folder not in failed]
    made_with = environment(device)
    curves = (_curve(folder, store, made_with) for folder in whole)
    append_results(store.results / CURVES, [row for row in curves if row is not None])
    rows = _scored(whole, request, device, report, made_with)
    for folder, why in failed.items():
        told_row = {"weights": "none", "step": folder.step() or 0, "failed": why}
        rows.append(_known(folder) | told_row | {"made_with": made_with})
    append_results(store.results / SCORES, rows)


def _known(folder: RunFolder) -> Row:
    """What tells a run."""
    config = folder.config
    return {
        "run": config.name,
        "task": config.task,
        "model": config.model,
        "setting": config.own(),
        "seed": config.seed,
    }


def _scored(
    folders: Sequence[RunFolder],
    request: Request,
    device: torch.device,
    report: Report,
    made_with: Row,
) -> list[Row]:
    """Rows of the last weights, and of the best ones where they are others."""
    by_kind: dict[str, list[RunFolder]] = {}
    for folder in folders:
        for kind in kinds_of_weights(folder):
            by_kind.setdefault(kind, []).append(folder)
    rows = []
    for kind, some in by_kind.items():
        counts = score(some, kind, samples=request.samples, device=device, report=report)
        for folder, count in zip(some, counts, strict=True):
            weights = folder.weights(kind)
            assert weights is not None
            rows.append(
                _known(folder)
                | {
                    "weights": kind,
                    "step": weights.step,
                    "samples": request.samples,
                    "first_length": count.lengths[0],
                    "score": count.score,
                    "correct": count.correct.tolist(),
                    "total": packed_totals(count.total.tolist()),
                    "made_with": made_with,
                }
            )
    return rows


def _curve(folder: RunFolder, store: Store, made_with: Row) -> Row | None:
    """What a run has learned since the last row of its curve."""
    name = folder.config.name
    before = [row["step"][-1] for row in read_results(store.results / CURVES) if row["run"] == name]
    last = max(before, default=0)
    new = [row for row in folder.rows(METRICS) if row["step"] > last]
    if not new:
        return None
    parts = {column: [] for column in ("step", *COLUMNS_OF_A_CURVE)}  # type: dict[str, list[Any]]
    for some in _pieces(new):
        parts["step"].append(some[-1]["step"])
        parts["seconds"].append(some[-1]["seconds"])
        for column in ("loss", "accuracy"):
            parts[column].append(round(sum(row[column] for row in some) / len(some), 6))
    return _known(folder) | parts | {"made_with": made_with}


def _pieces(rows: Sequence[Row]) -> Iterable[Sequence[Row]]:
    """Rows, some together where there are many."""
    each = -(-len(rows) // MOST_POINTS)
    return (rows[first : first + each] for first in range(0, len(rows), each))
