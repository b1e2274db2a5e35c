"""Runs as an experiment wants them: trained, scored, and kept as rows of results."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path

import torch

from prlstm.environment import environment
from prlstm.files import Row
from prlstm.report.columns import PRECISION, Column
from prlstm.report.rows import SCORES, append_results, read_results
from prlstm.report.scores import as_ranges, packed_totals
from prlstm.tasks.floors import SCORED
from prlstm.training import Event, Report, Request, RunConfig, RunFolder, loop, score, train
from prlstm.training.events import Stopped
from prlstm.training.runs import METRICS
from prlstm.training.scoring import kinds_of_weights

# points of a curve in one row
MOST_POINTS = 200


@dataclass(frozen=True)
class Wanted:
    """A cell of a table: a task, a column, and seeds, which are trained together."""

    task: str
    column: Column
    seeds: tuple[int, ...]
    precision: str

    @property
    def configs(self) -> tuple[RunConfig, ...]:
        """The runs."""
        own = {**self.column.setting, PRECISION: self.precision}
        first = RunConfig.from_own(self.task, self.column.model, own)
        return tuple(first.with_seed(seed) for seed in self.seeds)

    @property
    def name(self) -> str:
        """As a person calls it."""
        return f"{self.column.title} on {self.task}"


@dataclass(frozen=True)
class Store:
    """Where rows are kept, and where runs are; of some experiments the curves alone are wanted."""

    results: Path
    runs: Path
    curves: str
    is_scored: bool = True
    lengths: tuple[int, ...] = tuple(SCORED)

    def missing(self, wanted: Wanted, request: Request) -> list[RunConfig]:
        """Those runs of a cell that no row answers: none that went so far, and none that failed."""
        answered = {row["run"] for row in self._rows() if self._is_answer(row, request)}
        return [config for config in wanted.configs if config.name not in answered]

    def answers(self, wanted: Wanted) -> list[Row]:
        """The rows of a cell."""
        names = {config.name for config in wanted.configs}
        return [row for row in self._rows() if row["run"] in names]

    def made(self, wanted: Wanted) -> int:
        """From which step on training would go on."""
        folders = (RunFolder(self.runs / one.name, one) for one in wanted.configs)
        return min(folder.step() or 0 for folder in folders)

    def _rows(self) -> list[Row]:
        return read_results(self.results / (SCORES if self.is_scored else self.curves))

    def _is_answer(self, row: Row, request: Request) -> bool:
        if row.get("failed"):
            return True
        if not self.is_scored:
            return bool(row["step"][-1] >= request.steps)
        is_last = row["weights"] == "last" and row["lengths"] == as_ranges(self.lengths)
        return bool(is_last and row["step"] >= request.steps and row["samples"] >= request.samples)


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
    made_with = {"made_with": environment(device)}
    curves = [row | made_with for folder in whole for row in _curve(folder, store)]
    append_results(store.results / store.curves, curves, _piece)
    rows = _scored(whole, request, store, device, report) if store.is_scored else []
    for folder, why in failed.items():
        step = folder.step() or 0
        rows.append(_known(folder) | {"weights": "none", "step": step, "failed": why})
    if rows:
        append_results(store.results / SCORES, [row | made_with for row in rows], _score)


def _piece(row: Row) -> Hashable:
    """What tells a part of a curve: two that made a cell at a time leave one of it."""
    return row["run"], row["step"][-1]


def _score(row: Row) -> Hashable:
    """What tells a score."""
    return row["run"], row["weights"], row["step"], row.get("samples"), str(row.get("lengths"))


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
    store: Store,
    device: torch.device,
    report: Report,
) -> list[Row]:
    """Rows of the last weights, and of the best ones where they are others."""
    by_kind: dict[str, list[RunFolder]] = {}
    for folder in folders:
        for kind in kinds_of_weights(folder):
            by_kind.setdefault(kind, []).append(folder)
    rows = []
    # the last weights at the end: their rows say that nothing is missing
    for kind in sorted(by_kind, key=lambda kind: kind == "last"):
        some = by_kind[kind]
        counts = score(some, kind, store.lengths, request.samples, device=device, report=report)
        for folder, count in zip(some, counts, strict=True):
            weights = folder.weights(kind)
            assert weights is not None
            rows.append(
                _known(folder)
                | {
                    "weights": kind,
                    "step": weights.step,
                    "seconds": folder.rows(METRICS)[-1]["seconds"],
                    "samples": request.samples,
                    "lengths": as_ranges(count.lengths),
                    "score": count.score,
                    "correct": count.correct.tolist(),
                    "total": packed_totals(count.total.tolist()),
                }
            )
    return rows


def _curve(folder: RunFolder, store: Store) -> list[Row]:
    """A row of what a run has learned since the last row of its curve, if it has."""
    name, path = folder.config.name, store.results / store.curves
    before = [row["step"][-1] for row in read_results(path) if row["run"] == name]
    first = max(before, default=0)
    new = _blocks([row for row in folder.rows(METRICS) if row["step"] > first], first)
    if not new:
        return []
    parts: dict[str, list[float]] = {"step": [], "seconds": [], "loss": [], "accuracy": []}
    for some in _pieces(new):
        parts["step"].append(some[-1]["step"])
        parts["seconds"].append(some[-1]["seconds"])
        for column in ("loss", "accuracy"):
            parts[column].append(round(sum(row[column] for row in some) / len(some), 6))
    return [_known(folder) | parts]


def _blocks(rows: Sequence[Row], step: int) -> list[Row]:
    """Whole blocks of steps after `step`; a save on the way leaves a row for a part of one.

    So a curve has the same points, however often its run was saved, killed and continued.
    """
    blocks: list[Row] = []
    for _, parts in groupby(rows, lambda row: (row["step"] - 1) // loop.BLOCK):
        some = list(parts)
        steps = [after - one for one, after in pairwise([step, *(row["step"] for row in some)])]
        step = some[-1]["step"]
        answers = [row.get("answers", part) for row, part in zip(some, steps, strict=True)]
        mean = {}
        for column, weights in (("loss", steps), ("accuracy", answers)):
            whole = sum(row[column] * one for row, one in zip(some, weights, strict=True))
            mean[column] = whole / sum(weights)
        blocks.append(some[-1] | mean)
    return blocks


def _pieces(rows: Sequence[Row]) -> Iterable[Sequence[Row]]:
    """Rows, some together where there are many."""
    each = -(-len(rows) // MOST_POINTS)
    return (rows[first : first + each] for first in range(0, len(rows), each))
