"""Scores of many runs as the cells of a table."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prlstm import tasks
from prlstm.files import Row
from prlstm.report.columns import USUAL_PRECISION, Column, precision_of
from prlstm.report.paper import tables
from prlstm.report.statistics import score_interval, share_interval
from prlstm.tasks.floors import SCORED

# a run that reaches this has succeeded
SUCCESS = 0.9
# the lengths of the scores of a table
PROTOCOL = [[SCORED[0], SCORED[-1]]]


@dataclass(frozen=True)
class SeedScore:
    """One run: the score of its last weights, with its interval, and that of its best ones.

    `accuracy` is that of each of the `lengths`, with the last weights. `best` is None where the
    best weights are the last ones, or where no row tells of them as they were at this step.
    """

    seed: int
    step: int
    samples: int
    score: float
    low: float
    high: float
    best: float | None
    lengths: tuple[int, ...]
    accuracy: tuple[float, ...]


@dataclass(frozen=True)
class Cell:
    """A task and a model: what the paper says, what guessing gets, what our seeds have reached.

    `failed` tells why runs stopped that have no score: one for each of these seeds.
    """

    task: str
    column: Column
    paper: float | None
    seeds: tuple[SeedScore, ...]
    failed: tuple[str, ...]
    precision: str
    made_with: tuple[Mapping[str, Any], ...]

    @property
    def floor(self) -> float:
        """What the best predictor scores that does not read the word."""
        return tasks.get(self.task).floors.best

    @property
    def most(self) -> float:
        """The protocol's number."""
        return max(one.score for one in self.seeds)

    @property
    def best_seed(self) -> SeedScore:
        """The one that has it."""
        return max(self.seeds, key=lambda one: one.score)

    @property
    def median(self) -> float:
        """Over seeds that have a score."""
        return statistics.median(one.score for one in self.seeds)

    @property
    def apart(self) -> float | None:
        """How far our number is above the paper's, if there are both."""
        return None if self.paper is None or not self.seeds else self.most - self.paper

    @property
    def succeeded(self) -> int:
        """How many seeds."""
        return sum(one.score >= SUCCESS for one in self.seeds)

    @property
    def tried(self) -> int:
        """Of how many seeds something is known: a score, or that they failed."""
        return len(self.seeds) + len(self.failed)

    @property
    def outcome(self) -> str:
        """How many seeds succeeded of those tried, as a person reads it: "1/3, 1 failed"."""
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return f"{self.succeeded}/{self.tried}{failed}"

    @property
    def steps(self) -> tuple[int, int]:
        """The fewest and the most that stand behind it."""
        made = [one.step for one in self.seeds]
        return min(made), max(made)

    @property
    def is_solved(self) -> bool:
        """As the protocol says: at least one seed succeeded."""
        return bool(self.seeds) and self.most >= SUCCESS

    @property
    def is_floor_enough(self) -> bool:
        """Whether guessing alone would pass."""
        return self.floor >= SUCCESS

    @property
    def chance(self) -> tuple[float, float]:
        """With which a seed succeeds: an interval. One that failed did not."""
        return share_interval(self.succeeded, self.tried)


def score_cells(
    rows: Iterable[Row],
    columns: Sequence[Column],
    names: Sequence[str],
    table: str,
    lengths: list[list[int]] = PROTOCOL,
) -> dict[tuple[str, str], Cell]:
    """The cells of a table, by task and column; those without a row have no seeds.

    Of each run the row of the most steps counts; of runs in several precisions those do whose
    scores are of the most steps, and of these those with most seeds.
    """
    known = [row for row in rows if row.get("failed") or row["lengths"] == lengths]
    found = {}
    for column in columns:
        mine = [row for row in known if column.fits(row)]
        for task in names:
            here = [row for row in mine if row["task"] == task]
            found[task, column.name] = _cell(task, column, here, table)
    return found


def _cell(task: str, column: Column, rows: list[Row], table: str) -> Cell:
    paper = tables().get(table, {}).get(column.name, {}).get(task)
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(precision_of(row), []).append(row)
    precision, chosen = max(groups.items(), key=_backing, default=(USUAL_PRECISION, []))
    last = _furthest(row for row in chosen if row["weights"] == "last")
    scores = [_seed_score(row, _best(row, chosen)) for _, row in sorted(last.items())]
    failed = {row["seed"]: row["failed"] for row in chosen if row["weights"] == "none"}
    made = {json_key(row["made_with"]): row["made_with"] for row in last.values()}
    return Cell(
        task,
        column,
        None if paper is None else paper / 100,
        tuple(scores),
        tuple(why for seed, why in failed.items() if seed not in last),
        precision,
        tuple(made.values()),
    )


def _seed_score(row: Row, best: float | None) -> SeedScore:
    correct, total = counts(row)
    low, high = score_interval(correct, total)
    return SeedScore(
        row["seed"],
        row["step"],
        row["samples"],
        row["score"],
        low,
        high,
        best,
        lengths=tuple(n for least, most in row["lengths"] for n in range(least, most + 1)),
        accuracy=tuple(sum(c) / sum(of) for c, of in zip(correct, total, strict=True)),
    )


def json_key(made_with: Mapping[str, Any]) -> tuple[str, ...]:
    """What tells where a row was made."""
    return tuple(str(made_with.get(name)) for name in ("device", "torch", "commit"))


def _furthest(rows: Iterable[Row]) -> dict[int, Row]:
    """By seed the row of the most steps, of these that of the most words, of these the last."""
    found: dict[int, Row] = {}
    for row in rows:
        known = found.get(row["seed"])
        if known is None or _thorough(row) >= _thorough(known):
            found[row["seed"]] = row
    return found


def _thorough(row: Row) -> tuple[int, int]:
    return row["step"], row["samples"]


def _best(last: Row, rows: Iterable[Row]) -> float | None:
    """The score of the weights that had validated best when the last ones were scored.

    They have a row where they are others, which is written once. So behind a later score of last
    weights it may be out of date: whether better ones came in between, no row tells.
    """
    mine = [row for row in rows if row["run"] == last["run"]]
    before = max(
        (row["step"] for row in mine if row["weights"] == "last" and row["step"] < last["step"]),
        default=0,
    )
    best = [
        row for row in mine if row["weights"] == "best" and before <= row["step"] < last["step"]
    ]
    found = _furthest(best).get(last["seed"])
    return None if found is None else float(found["score"])


def _backing(group: tuple[str, list[Row]]) -> tuple[int, int, int]:
    """The steps and seeds behind scores of one precision; without any, behind what failed."""
    scores = [row for row in group[1] if row["weights"] == "last"]
    rows = scores or group[1]
    return len(scores) > 0, max(row["step"] for row in rows), len({row["seed"] for row in rows})


def counts(row: Row) -> tuple[list[list[int]], list[list[int]]]:
    """Right and all answers of a row, by length and sub-batch.

    A length whose sub-batches have equally many answers says so with one number.
    """
    correct = row["correct"]
    total = [
        of if isinstance(of, list) else [of] * len(right)
        for right, of in zip(correct, row["total"], strict=True)
    ]
    return correct, total


def as_ranges(lengths: Iterable[int]) -> list[list[int]]:
    """Lengths in order, as first and last of those that follow each other.

    >>> as_ranges([41, 42, 43, 100])
    [[41, 43], [100, 100]]
    """
    ranges: list[list[int]] = []
    for length in lengths:
        if ranges and length == ranges[-1][1] + 1:
            ranges[-1][1] = length
        else:
            ranges.append([length, length])
    return ranges


def packed_totals(total: Sequence[Sequence[int]]) -> list[int | list[int]]:
    """What `counts` reads."""
    return [of[0] if len(set(of)) == 1 else list(of) for of in total]
