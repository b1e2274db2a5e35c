"""Runs as an experiment wants them: trained, scored, and kept as rows of results."""

import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby, pairwise
from pathlib import Path

import torch

from prlstm.environment import environment, place_of
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
    """Where rows are kept, and where runs are; of some experiments the curves alone are wanted.

    These are times: with a `place`, as `prlstm.environment` tells it, no other's are an answer.
    """

    results: Path
    runs: Path
    curves: str
    is_scored: bool = True
    lengths: tuple[int, ...] = tuple(SCORED)
    place: tuple[str, int | None] | None = None

    def missing(self, wanted: Wanted, request: Request) -> list[RunConfig]:
        """Those runs of a cell that no row answers: none that went so far, and none that failed."""
        return [
            config
            for config in wanted.configs
            if not any(self._is_answer(row, request) for row in self._rows_of(config))
        ]

    def answers(self, wanted: Wanted, request: Request) -> list[Row]:
        """The rows of a cell, of any number of steps, without their counts."""
        some = replace(request, steps=1)
        rows = [row for config in wanted.configs for row in self._rows_of(config)]
        return [row for row in rows if self._is_answer(row, some)]

    def made(self, wanted: Wanted) -> int:
        """From which step on training would go on."""
        folders = (RunFolder(self.runs / one.name, one) for one in wanted.configs)
        return min(folder.step() or 0 for folder in folders)

    @property
    def answering(self) -> Path:
        """The file whose rows say what is done."""
        return self.results / (SCORES if self.is_scored else self.curves)

    def identity(self, row: Row) -> Hashable:
        """What tells a row: two that made a cell at a time leave one of each.

        Scores are the same wherever they are made, times are not.
        """
        last = row["step"][-1] if isinstance(row["step"], list) else row["step"]
        told = row["run"], row.get("weights"), last, row.get("samples"), str(row.get("lengths"))
        return told if self.is_scored else (*told, place_of(row["made_with"]))

    def _rows_of(self, config: RunConfig) -> Sequence[Row]:
        return _by_run(self.answering, _stamp(self.answering)).get(config.name, ())

    def _is_answer(self, row: Row, request: Request) -> bool:
        if row.get("failed"):
            return True
        if not self.is_scored:
            is_here = self.place in (None, place_of(row["made_with"]))
            return bool(is_here and row["step"][-1] >= request.steps)
        is_last = row["weights"] == "last" and row["lengths"] == as_ranges(self.lengths)
        return bool(is_last and row["step"] >= request.steps and row["samples"] >= request.samples)


def _stamp(path: Path) -> tuple[int, int]:
    """Another one for other contents: rows are only ever added."""
    if not path.exists():
        return 0, 0
    known = path.stat()
    return known.st_mtime_ns, known.st_size


# whoever chooses what is next asks again and again
@lru_cache(maxsize=2)
def _by_run(path: Path, stamp: tuple[int, int]) -> Mapping[str, Sequence[Row]]:
    """The rows of a file by the name of their run, without what makes them large."""
    found: dict[str, list[Row]] = {}
    for row in read_results(path):
        small = {name: row[name] for name in row if name not in ("correct", "total")}
        found.setdefault(row["run"], []).append(small)
    return found


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
    curves = [row | made_with for folder in whole for row in _curve(folder, store, made_with)]
    append_results(store.results / store.curves, curves, store.identity)
    rows = _scored(whole, request, store, device, report) if store.is_scored else []
    for folder, why in failed.items():
        step = folder.step() or 0
        rows.append(_known(folder) | {"weights": "none", "step": step, "failed": why})
    if rows:
        append_results(store.answering, [row | made_with for row in rows], store.identity)


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
    for folder in folders:
        # known before the time of a score is spent
        _seconds(folder)
    rows = []
    # the last weights at the end: their rows say that nothing is missing
    for kind in sorted(by_kind, key=lambda kind: kind == "last"):
        some, begun = by_kind[kind], time.monotonic()
        counts = score(some, kind, store.lengths, request.samples, device=device, report=report)
        score_seconds = round(time.monotonic() - begun, 3)
        for folder, count in zip(some, counts, strict=True):
            weights = folder.weights(kind)
            assert weights is not None
            rows.append(
                _known(folder)
                | {
                    "weights": kind,
                    "step": weights.step,
                    "seconds": _seconds(folder),
                    "score_seconds": score_seconds,
                    "samples": request.samples,
                    "lengths": as_ranges(count.lengths),
                    "score": count.score,
                    "correct": count.correct.tolist(),
                    "total": packed_totals(count.total.tolist()),
                }
            )
    return rows


def _seconds(folder: RunFolder) -> float:
    """How long it was trained."""
    rows = folder.rows(METRICS)
    if not rows:
        raise FileNotFoundError(
            f"{folder.path}: expected {METRICS} beside the checkpoint, which knows no times"
        )
    return float(rows[-1]["seconds"])


def _curve(folder: RunFolder, store: Store, made_with: Row) -> list[Row]:
    """A row of what a run has learned since the last row of its curve, if it has."""
    name, path = folder.config.name, store.results / store.curves
    mine = [row for row in read_results(path) if row["run"] == name and not row.get("failed")]
    if not store.is_scored:
        # times of other machines make another curve
        mine = [
            row for row in mine if place_of(row["made_with"]) == place_of(made_with["made_with"])
        ]
    before = [row["step"][-1] for row in mine]
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
