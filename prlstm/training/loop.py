"""Runs trained to a number of steps: from where they stand, many seeds at once, kept on disk."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from prlstm.training.checkpoint import Checkpoint, restore, take
from prlstm.training.config import RunConfig
from prlstm.training.runs import RunFolder
from prlstm.training.trainer import Metrics, Trainer

# steps between two readings of the metrics, and seconds between two checkpoints
BLOCK, CHECKPOINT_SECONDS = 100, 60.0


@dataclass(frozen=True)
class Progress:
    """Where some runs stand, and the means over the last block of steps, for each run: (S,)."""

    folders: Sequence[RunFolder]
    step: int
    seconds: float
    loss: Tensor
    accuracy: Tensor
    norm: Tensor


def train(
    configs: Sequence[RunConfig],
    steps: int,
    root: Path,
    *,
    device: torch.device | str = "cpu",
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    report: Callable[[Progress], None] = lambda progress: None,
) -> list[RunFolder]:
    """Train runs that differ in their seeds to `steps` updates each, in folders below `root`.

    A run goes on from its checkpoint. Those that stand at the same step are trained together; so
    a killed process loses at most what came after the last checkpoint, and the end is the same.
    On an interrupt all is saved first.
    """
    folders = [RunFolder.create(root, config, torch.device(device)) for config in configs]
    with ExitStack() as held:
        for folder in folders:
            held.enter_context(folder.locked())
        standing: dict[int, list[tuple[RunFolder, Checkpoint | None]]] = {}
        for folder in folders:
            checkpoint = folder.checkpoint()
            step = 0 if checkpoint is None else checkpoint.step
            standing.setdefault(step, []).append((folder, checkpoint))
        for step, group in standing.items():
            if step < steps:
                _train_together(group, steps, device, checkpoint_seconds, report)
    return folders


def _train_together(
    group: list[tuple[RunFolder, Checkpoint | None]],
    steps: int,
    device: torch.device | str,
    checkpoint_seconds: float,
    report: Callable[[Progress], None],
) -> None:
    """Runs that stand at one step, trained as one."""
    folders = [folder for folder, _ in group]
    trainer = Trainer([folder.config for folder in folders], device)
    checkpoints = [checkpoint for _, checkpoint in group if checkpoint is not None]
    if checkpoints:
        restore(trainer, checkpoints)
    for folder in folders:
        folder.forget_after(trainer.step)
    # the clock goes on where the rows end
    before = max((row["seconds"] for folder in folders for row in folder.metrics()), default=0.0)
    start = saved = time.monotonic()
    try:
        while trainer.step < steps:
            trainer.update(min(BLOCK - trainer.step % BLOCK, steps - trainer.step))
            now = time.monotonic()
            progress = _progress(folders, trainer, before + now - start)
            _append(progress)
            report(progress)
            if now - saved >= checkpoint_seconds:
                _save(folders, trainer)
                saved = now
    except KeyboardInterrupt:
        _save(folders, trainer)
        raise
    _save(folders, trainer)


def _progress(folders: Sequence[RunFolder], trainer: Trainer, seconds: float) -> Progress:
    """The means over the last block; a loss that is no number ends the run."""
    metrics: Metrics = trainer.read_metrics()
    finite = metrics.loss.isfinite()
    if not finite.all():
        step, seed = (~finite).nonzero()[0].tolist()
        raise FloatingPointError(
            f"{folders[seed].path}: the loss is {metrics.loss[step, seed].item()} at step "
            f"{metrics.first_step + step}; the last checkpoint before it is kept"
        )
    accuracy = metrics.correct.sum(0) / metrics.total.sum(0)
    means = (metrics.loss.mean(0), accuracy, metrics.norm.mean(0))
    return Progress(folders, trainer.step, seconds, *means)


def _append(progress: Progress) -> None:
    for seed, folder in enumerate(progress.folders):
        row = {
            "step": progress.step,
            "seconds": round(progress.seconds, 3),
            "loss": progress.loss[seed].item(),
            "accuracy": progress.accuracy[seed].item(),
            "norm": progress.norm[seed].item(),
        }
        folder.append([row])


def _save(folders: Sequence[RunFolder], trainer: Trainer) -> None:
    for folder, checkpoint in zip(folders, take(trainer), strict=True):
        folder.save(checkpoint)
