"""The score of runs that are on disk, written beside them."""

from collections.abc import Sequence

import torch

from prlstm.environment import environment
from prlstm.evaluation import LengthCounts, evaluate
from prlstm.evaluation.score import SAMPLES, SEED, SPLIT
from prlstm.files import Row
from prlstm.models import Model, Stacked
from prlstm.models.folder import WEIGHTS, load
from prlstm.tasks.floors import SCORED
from prlstm.training.events import Report, Scored, Scoring
from prlstm.training.precision import computing
from prlstm.training.runs import SCORES, RunFolder


def score(
    folders: Sequence[RunFolder],
    weights: str = "last",
    lengths: Sequence[int] = SCORED,
    samples: int = SAMPLES,
    *,
    device: torch.device | str = "cpu",
    report: Report = lambda event: None,
) -> list[LengthCounts]:
    """How right runs of one configuration are, all seeds at once; rows that are there answer.

    `weights` are the last ones, those that validated best, or their average.
    """
    asked = {
        "weights": weights,
        "samples": samples,
        "seed": SEED,
        "split": SPLIT,
        "lengths": sorted(set(lengths)),
    }
    steps = [_step(folder, weights) for folder in folders]
    pairs = zip(folders, steps, strict=True)
    found = [_found(folder, asked | {"step": step}) for folder, step in pairs]
    missing = [folder for folder, counts in zip(folders, found, strict=True) if counts is None]
    fresh = iter(_scored(missing, asked, torch.device(device), report) if missing else [])
    return [next(fresh) if counts is None else counts for counts in found]


def kinds_of_weights(folder: RunFolder) -> list[str]:
    """Which weights of a run there are to score: the last ones, and others that differ."""
    kinds = ["last"]
    last, best = folder.weights("last"), folder.weights("best")
    if last is not None and best is not None and best.step != last.step:
        kinds.append("best")
    if folder.weights("average") is not None:
        kinds.append("average")
    return kinds


def read_counts(row: Row) -> LengthCounts:
    """The counts of a row of scores, or an error that says what is wrong with it."""
    try:
        lengths = tuple(map(int, row["lengths"]))
        correct, total = (torch.tensor(row[name]) for name in ("correct", "total"))
    except (KeyError, TypeError, ValueError, RuntimeError, OverflowError) as wrong:
        raise ValueError(f"a row of scores that is none: {wrong}") from None
    if correct.dim() != 2 or correct.shape != total.shape or len(lengths) != len(correct):
        raise ValueError(
            f"a row of scores with counts {tuple(correct.shape)} and {tuple(total.shape)}: "
            f"expected ({len(lengths)}, sub-batches) for its lengths"
        )
    return LengthCounts(lengths, correct, total)


def _step(folder: RunFolder, weights: str) -> int:
    """After how many steps the weights were so."""
    said = folder.weights(weights)
    if said is None:
        path = folder.path / WEIGHTS[weights]
        raise FileNotFoundError(f"{path}: not there, so there are no {weights} weights to score")
    return said.step


def _found(folder: RunFolder, asked: Row) -> LengthCounts | None:
    """The counts of a row that answers what is asked, if there is one."""
    for row in reversed(folder.rows(SCORES)):
        if all(row.get(name) == value for name, value in asked.items()):
            return read_counts(row)
    return None


def _loaded(folder: RunFolder, weights: str, device: torch.device) -> tuple[Model, int]:
    """A model, and the step that its weights are of, though somebody may be training it on."""
    while True:
        step = _step(folder, weights)
        model = load(folder.path, device, weights=weights)
        if step == _step(folder, weights):
            return model, step


def _scored(
    folders: list[RunFolder], asked: Row, device: torch.device, report: Report
) -> list[LengthCounts]:
    weights = asked["weights"]
    loaded = [_loaded(folder, weights, device) for folder in folders]
    alone = [model for model, _ in loaded]
    model = alone[0] if len(alone) == 1 else Stacked(alone)
    with computing(folders[0].config.precision, device):
        counts = evaluate(
            model,
            asked["lengths"],
            asked["samples"],
            report=lambda share: report(Scoring(folders, weights, share)),
        )
    made_with = environment(device)
    for folder, (_, step), count in zip(folders, loaded, counts, strict=True):
        row = asked | {
            "step": step,
            "score": count.score,
            "correct": count.correct.tolist(),
            "total": count.total.tolist(),
            "made_with": made_with,
        }
        folder.append(SCORES, row)
        report(Scored(folder, weights, count.score))
    return counts
