"""What runs on disk have reached."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from prlstm import tasks
from prlstm.evaluation import LengthCounts
from prlstm.evaluation.score import SUCCESS
from prlstm.tasks.floors import SCORED
from prlstm.training.config import RunConfig
from prlstm.training.runs import METRICS, REQUEST, SCORES, RunFolder
from prlstm.training.scoring import read_counts


@dataclass(frozen=True)
class Score:
    """The score of some weights of a run: the mean accuracy over lengths 41 to 500."""

    step: int
    samples: int
    counts: LengthCounts

    @property
    def value(self) -> float:
        """Between 0 and 1."""
        return self.counts.score


@dataclass(frozen=True)
class Result:
    """A run as it is on disk. `scores` are by weights: "last", "best", "average"."""

    path: Path
    config: RunConfig
    step: int
    loss: float
    accuracy: float
    seconds: float
    scores: dict[str, Score]
    # to how many steps it was to go, if that is known, and whether it did, or was solved before
    asked: int | None
    is_done: bool

    @property
    def score(self) -> float | None:
        """That of the last weights: the one that is reported."""
        return self.scores["last"].value if "last" in self.scores else None

    @property
    def floor(self) -> float:
        """What guessing scores."""
        return tasks.get(self.config.task).floors.best


@dataclass(frozen=True)
class Summary:
    """Scores over seeds."""

    seeds: int
    most: float
    median: float
    succeeded: int


def result(folder: RunFolder) -> Result:
    """What a run has reached."""
    rows = folder.rows(METRICS)
    last = rows[-1] if rows else {}
    loss, accuracy, seconds = (_number(last.get(n)) for n in ("loss", "accuracy", "seconds"))
    step, scores = folder.step() or 0, _scores(folder)
    asked, is_done = None, True
    if (folder.path / REQUEST).exists():
        request = folder.request()
        asked, is_done = request.steps, request.is_met(step, folder.validated(step))
    return Result(folder.path, folder.config, step, loss, accuracy, seconds, scores, asked, is_done)


def summary(scores: Iterable[float]) -> Summary:
    """The protocol's numbers over seeds."""
    known = sorted(scores)
    succeeded = sum(score >= SUCCESS for score in known)
    return Summary(len(known), max(known), statistics.median(known), succeeded)


def find_runs(root: Path) -> Sequence[Path]:
    """The folders below `root` that hold a run, by name."""
    return sorted(path.parent for path in root.glob("*/config.json"))


def _scores(folder: RunFolder) -> dict[str, Score]:
    """Of each kind of weights the latest score by the protocol; of those the most thorough."""
    found: dict[str, Score] = {}
    for row in folder.rows(SCORES):
        if row.get("split") != "test" or row.get("lengths") != list(SCORED):
            continue
        weights, score = str(row.get("weights")), _score(folder, row)
        known = found.get(weights)
        if known is None or (score.step, score.samples) >= (known.step, known.samples):
            found[weights] = score
    return found


def _score(folder: RunFolder, row: dict[str, object]) -> Score:
    step, samples = row.get("step"), row.get("samples")
    if type(step) is not int or type(samples) is not int:
        raise ValueError(f"{folder.path / SCORES}: a row with step={step!r}, samples={samples!r}")
    return Score(step, samples, read_counts(row))


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else math.nan
