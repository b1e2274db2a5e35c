"""Runs trained to a number of steps: from where they stand, many seeds at once, kept on disk."""

import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from pathlib import Path

import torch

from prlstm.evaluation import evaluate
from prlstm.training.checkpoint import Checkpoint, restore, take
from prlstm.training.config import RunConfig
from prlstm.training.events import Begun, Block, Noted, Report, Saved, Stepped, Stopped, Validated
from prlstm.training.interrupt import Interrupt, deferred_interrupts
from prlstm.training.precision import computing
from prlstm.training.runs import (
    METRICS,
    VALIDATION,
    Request,
    RunFolder,
    locked,
    save_together,
    settle,
)
from prlstm.training.trainer import Metrics, Trainer

# steps between two readings of the metrics
BLOCK = 100
# words that neither training nor the score sees: of another seed
VALIDATED, VALIDATION_SEED, VALIDATION_SAMPLES = range(41, 101), 2, 64


def train(
    configs: Sequence[RunConfig],
    request: Request,
    root: Path,
    *,
    device: torch.device | str = "cpu",
    report: Report = lambda event: None,
) -> list[RunFolder]:
    """Train runs that differ in their seeds as far as is asked, in folders below `root`.

    A run goes on from its checkpoint. Those that stand at the same step are trained together; so
    a killed process loses at most what came after the last checkpoint, and the end is the same.
    An interrupt saves all, then is raised. A run whose loss is no number stops, the others go on,
    and that is an error at the end.
    """
    with ExitStack() as held, deferred_interrupts() as interrupt:
        folders = []
        for config in configs:
            held.enter_context(locked(root / config.name))
            folders.append(RunFolder.create(root, config, torch.device(device)))
        settle(folders)
        # all are read before anything is written: one that is damaged stops the others too
        found = [(folder, folder.checkpoint()) for folder in folders]
        standing: dict[int, list[tuple[RunFolder, Checkpoint | None]]] = {}
        for folder, checkpoint in found:
            folder.ask(request)
            if checkpoint is not None:
                # a kill may have come before the weights were written
                folder.publish(checkpoint)
            if not _done(folder, checkpoint, request):
                step = 0 if checkpoint is None else checkpoint.step
                standing.setdefault(step, []).append((folder, checkpoint))
        failures: list[str] = []
        for group in standing.values():
            checkpoints = [checkpoint for _, checkpoint in group if checkpoint is not None]
            stack = _Stack([folder for folder, _ in group], checkpoints, device, request, report)
            failures += stack.train(interrupt)
        if interrupt.asked:
            raise KeyboardInterrupt
    if failures:
        raise FloatingPointError("\n".join(failures))
    return folders


def _done(folder: RunFolder, checkpoint: Checkpoint | None, request: Request) -> bool:
    if checkpoint is None:
        return False
    accuracy = folder.validated(checkpoint.step)
    if accuracy is None and request.is_validated(checkpoint.step):
        return False
    return request.is_met(checkpoint.step, accuracy)


class _Stack:
    """Runs that stand at one step, trained as one until each is done."""

    def __init__(
        self,
        folders: list[RunFolder],
        checkpoints: list[Checkpoint],
        device: torch.device | str,
        request: Request,
        report: Report,
    ) -> None:
        self.folders, self.device, self.request, self.report = folders, device, request, report
        self.trainer = self._restored(checkpoints)
        for folder in folders:
            folder.forget_after(self.trainer.step)
        # the clock goes on where the rows end
        rows = [row for folder in folders for row in folder.rows(METRICS)[-1:]]
        self.start = time.monotonic() - max((row["seconds"] for row in rows), default=0.0)
        self.saved = time.monotonic()

    def train(self, interrupt: Interrupt) -> list[str]:
        """Make the steps that are asked for; what failed is told."""
        request, failures = self.request, []
        self.report(Begun(self.folders, self.trainer.step, request.steps))
        # an interrupt may have come before the validation of the step that it saved
        if self._is_validated_here():
            self._leave(self._validate())
        while self.folders and self.trainer.step < request.steps:
            self._make_block(interrupt)
            failed = self._read_block()
            failures += [f"{folder.path}: {why}" for folder, why in failed.items()]
            self._leave(failed)
            at_validation = self._is_validated_here() and not interrupt.asked
            solved = self._validate() if at_validation else set()
            if interrupt.asked or solved or self._is_time_to_save():
                self._save()
            if interrupt.asked:
                raise KeyboardInterrupt
            self._leave(solved)
        self._save()
        return failures

    def _restored(self, checkpoints: list[Checkpoint]) -> Trainer:
        configs = [folder.config for folder in self.folders]
        trainer = Trainer(configs, self.device, say=lambda line: self.report(Noted(line)))
        if checkpoints:
            restore(trainer, checkpoints)
        return trainer

    def _make_block(self, interrupt: Interrupt) -> None:
        """Steps to the next row, or fewer if there is something else to do."""
        trainer = self.trainer
        stops = (BLOCK, self.request.validate_every or BLOCK)
        ahead = min(every - trainer.step % every for every in stops)
        for _ in range(min(ahead, self.request.steps - trainer.step)):
            trainer.update()
            self.report(Stepped(trainer.step))
            if interrupt.asked or self._is_time_to_save():
                return

    def _read_block(self) -> dict[RunFolder, str]:
        """Rows of the last steps; those runs that failed in them, and why."""
        metrics = self.trainer.read_metrics()
        # in float64: a block whose parts have rows of their own can be put together again
        answers = metrics.total.sum(0).double()
        accuracy = metrics.correct.sum(0) / answers
        means = (metrics.loss.double().mean(0), accuracy, metrics.norm.double().mean(0))
        seconds = round(time.monotonic() - self.start, 3)
        failed = {}
        for seed, folder in enumerate(self.folders):
            if why := _failure(metrics, seed):
                failed[folder] = why
                self.report(Stopped(folder, self.trainer.step, why, failed=True))
                continue
            names = ("loss", "accuracy", "norm")
            row = {name: mean[seed].item() for name, mean in zip(names, means, strict=True)}
            row |= {"answers": answers[seed].item()}
            folder.append(METRICS, {"step": self.trainer.step, "seconds": seconds} | row)
        self.report(Block(self.folders, self.trainer.step, seconds, *means))
        return failed

    def _is_validated_here(self) -> bool:
        return self.request.is_validated(self.trainer.step)

    def _validate(self) -> set[RunFolder]:
        """Rows of the accuracy on other words, the best weights; which runs are done by that."""
        step: int = self.trainer.step
        solved: set[RunFolder] = set()
        missing = {folder for folder in self.folders if folder.validated(step) is None}
        if not missing:
            return solved
        with computing(self.trainer.config.precision, self.trainer.device):
            counts = evaluate(
                self.trainer.model,
                VALIDATED,
                VALIDATION_SAMPLES,
                seed=VALIDATION_SEED,
                split="validation",
            )
        checkpoints = take(self.trainer)
        for folder, checkpoint, count in zip(self.folders, checkpoints, counts, strict=True):
            best, accuracy = folder.weights("best"), count.score
            # of equals the later one: it is trained longer
            is_best = best is None or best.accuracy is None or accuracy >= best.accuracy
            if folder in missing:
                # the weights first: a row says that all is done
                if is_best:
                    folder.save_best(checkpoint, accuracy)
                folder.append(VALIDATION, {"step": step, "accuracy": accuracy})
                self.report(Validated(folder, step, accuracy, is_best))
            if step < self.request.steps and self.request.is_met(step, accuracy):
                solved.add(folder)
                self.report(Stopped(folder, step, f"solved at step {step:,}", failed=False))
        return solved

    def _is_time_to_save(self) -> bool:
        return time.monotonic() - self.saved >= self.request.checkpoint_seconds

    def _save(self) -> None:
        if not self.folders:
            return
        save_together(self.folders, take(self.trainer))
        self.saved = time.monotonic()
        self.report(Saved(self.trainer.step))

    def _leave(self, leaving: Collection[RunFolder]) -> None:
        """Go on without some runs; what is worth keeping of them was saved."""
        if not leaving:
            return
        checkpoints = take(self.trainer)
        staying = [n for n, folder in enumerate(self.folders) if folder not in leaving]
        self.folders = [self.folders[n] for n in staying]
        if self.folders:
            self.trainer = self._restored([checkpoints[n] for n in staying])


def _failure(metrics: Metrics, seed: int) -> str | None:
    """What is no number, and where first."""
    for name, values in (("loss", metrics.loss), ("norm of the gradient", metrics.norm)):
        wrong = (~values[:, seed].isfinite()).nonzero()
        if len(wrong):
            step = int(wrong[0])
            return (
                f"the {name} is {values[step, seed].item()} at step {metrics.first_step + step}; "
                "what was saved before it is kept"
            )
    return None
