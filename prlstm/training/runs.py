"""Runs on disk: one folder each, named by the content of its configuration.

    config.json              what is run, and with what it was made
    request.json             how far it was asked to go
    metrics.jsonl            one row for each block of steps
    validation.jsonl         accuracy on words that neither training nor the score sees
    scores.jsonl             right and all answers, for every length and sub-batch of 64
    checkpoint.safetensors   all that the run needs to go on
    model.safetensors        the last weights, for `prlstm.load`
    best.safetensors         those that validated best; average.safetensors: their average

Files are written whole; rows are appended, and a row that was cut off does not count.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from prlstm.environment import environment
from prlstm.files import Row, append_rows, read_object, read_rows, write_whole
from prlstm.models.folder import CONFIG, WEIGHTS
from prlstm.tasks.floors import SUB_BATCH
from prlstm.training.checkpoint import Checkpoint, Tensors, read_step
from prlstm.training.config import RunConfig

REQUEST, CHECKPOINT, LOCK = "request.json", "checkpoint.safetensors", ".lock"
# a checkpoint that waits until those of all runs in the stack are written
NEXT = ".checkpoint.safetensors.next"
METRICS, VALIDATION, SCORES = "metrics.jsonl", "validation.jsonl", "scores.jsonl"
# what a row must have: numbers that are none of a joker's
NUMBERS = {
    METRICS: ("step", "seconds", "loss", "accuracy", "norm"),
    VALIDATION: ("step", "accuracy"),
    SCORES: ("step", "samples"),
}
LARGE = 1e300
# an accuracy in a validation with which a run counts as solved
SOLVED = 0.99
# the key of what is said beside weights
SAID = "weights"


@dataclass(frozen=True, kw_only=True)
class Request:
    """How far some runs shall go, and what is done on the way. Changes no numbers of a step."""

    steps: int
    validate_every: int = 1000
    until_solved: bool = False
    checkpoint_seconds: float = 60.0
    samples: int = 512

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("validate_every", 0), ("samples", 1)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise ValueError(f"{name}={value!r}: expected an integer >= {least}")
        if self.samples % SUB_BATCH:
            raise ValueError(f"samples={self.samples}: expected a multiple of {SUB_BATCH}")
        if not self.checkpoint_seconds >= 0:
            raise ValueError(
                f"checkpoint_seconds={self.checkpoint_seconds}: expected a number >= 0"
            )
        if self.until_solved and not self.validate_every:
            raise ValueError("until_solved=True: expected validate_every >= 1, to find out")

    def is_validated(self, step: int) -> bool:
        """Whether a run is validated after so many steps."""
        every = self.validate_every
        return every > 0 and step > 0 and (step % every == 0 or step == self.steps)

    def is_met(self, step: int, accuracy: float | None) -> bool:
        """Whether a run that stands at a step, and validated there or not, is done."""
        solved = self.until_solved and accuracy is not None and accuracy >= SOLVED
        return solved or step >= self.steps


@dataclass(frozen=True)
class Weights:
    """What is said beside weights: after how many steps they were so; if best, how well."""

    step: int
    accuracy: float | None = None


@dataclass(frozen=True)
class RunFolder:
    """One run, in the folder `path`."""

    path: Path
    config: RunConfig = field(compare=False)

    @staticmethod
    def create(root: Path, config: RunConfig, device: torch.device) -> "RunFolder":
        """The folder of a run below `root`, made if it is not there."""
        path = root / config.name
        if (path / CONFIG).exists():
            there = RunFolder.open(path)
            # a name is short: others may have it too
            if there.config != config:
                raise ValueError(
                    f"{path}: holds another run of this name, expected {config.own()}, "
                    f"found {there.config.own()}; use another folder of runs"
                )
            return there
        path.mkdir(parents=True, exist_ok=True)
        _write_object(path / CONFIG, config.as_json() | {"made_with": environment(device)})
        return RunFolder(path, config)

    @staticmethod
    def open(path: Path) -> "RunFolder":
        """A run that is there."""
        if not (path / CONFIG).is_file():
            raise FileNotFoundError(f"{path}: expected the folder of a run, with {CONFIG} in it")
        try:
            contents = read_object(path / CONFIG)
            contents.pop("made_with", None)
            config = RunConfig.from_json(contents)
        except (AttributeError, TypeError, ValueError) as wrong:
            raise ValueError(f"{path / CONFIG}: not the configuration of a run ({wrong})") from None
        if config.name != path.resolve().name:
            raise ValueError(
                f"{path / CONFIG}: the configuration of {config.name}, expected {path.name}: "
                "it was changed, or the folder was renamed"
            )
        return RunFolder(path, config)

    def request(self) -> Request:
        """What was asked of the run last."""
        path = self.path / REQUEST
        if not path.is_file():
            raise FileNotFoundError(f"{path}: expected what was asked of the run, it is not there")
        known = {one.name for one in fields(Request)}
        try:
            given = read_object(path)
            return Request(**{name: value for name, value in given.items() if name in known})
        except (TypeError, ValueError) as wrong:
            raise ValueError(f"{path}: not a request ({wrong})") from None

    def ask(self, request: Request) -> None:
        """Write down what is asked of the run."""
        _write_object(self.path / REQUEST, asdict(request))

    def publish(self, checkpoint: Checkpoint) -> None:
        """Write the weights of a checkpoint as `prlstm.load` knows them."""
        said = Weights(checkpoint.step)
        self._write_weights("last", checkpoint.weights, said)
        if "average" in checkpoint.parts:
            self._write_weights("average", checkpoint.parts["average"], said)

    def save_best(self, checkpoint: Checkpoint, accuracy: float) -> None:
        """Keep the weights of a checkpoint as the best ones."""
        self._write_weights("best", checkpoint.weights, Weights(checkpoint.step, accuracy))

    def weights(self, which: str) -> Weights | None:
        """What is said beside the last, the best or the average weights; None without these."""
        path = self.path / WEIGHTS[which]
        if not path.is_file():
            return None
        try:
            with safe_open(path, "pt") as file:
                said = json.loads((file.metadata() or {}).get(SAID, "{}"))
            accuracy = said.get("accuracy")
            return Weights(int(said["step"]), None if accuracy is None else float(accuracy))
        except (SafetensorError, ValueError, AttributeError, TypeError, KeyError) as damaged:
            raise ValueError(f"{path}: not a whole file of weights of a run ({damaged})") from None

    def checkpoint(self) -> Checkpoint | None:
        """Where the run stands; None before its first checkpoint."""
        path = self.path / CHECKPOINT
        if not path.exists():
            return None
        checkpoint = Checkpoint.read(path)
        if checkpoint.run != self.config.name:
            raise ValueError(
                f"{path}: a checkpoint of {checkpoint.run!r:.80}, expected one of {self.path.name}"
            )
        with torch.device("meta"):
            expected = {n: w.shape for n, w in self.config.build().network.named_parameters()}
        for part, named in checkpoint.parts.items():
            if {name: tensor.shape for name, tensor in named.items()} != expected:
                raise ValueError(f"{path}: its {part} are not those that {CONFIG} makes")
        return checkpoint

    def step(self, name: str = CHECKPOINT) -> int | None:
        """After how many steps the run was saved last; None before its first checkpoint."""
        path = self.path / name
        return read_step(path) if path.exists() else None

    def append(self, name: str, row: Row) -> None:
        """Add a row to `METRICS`, `VALIDATION` or `SCORES`."""
        append_rows(self.path / name, [row])

    def rows(self, name: str) -> list[Row]:
        """All whole rows of `METRICS`, `VALIDATION` or `SCORES`."""
        rows = read_rows(self.path / name)
        for number, row in enumerate(rows, 1):
            for key in NUMBERS[name]:
                value = row.get(key)
                is_number = isinstance(value, (int, float)) and -LARGE < value < LARGE
                if not is_number:
                    raise ValueError(
                        f"{self.path / name}, line {number}: {key}={value!r:.40}, expected a number"
                    )
        return rows

    def validated(self, step: int) -> float | None:
        """The accuracy of a validation after so many steps, if there was one."""
        found = [row["accuracy"] for row in self.rows(VALIDATION) if row["step"] == step]
        return found[-1] if found else None

    def forget_after(self, step: int) -> None:
        """Drop the rows of steps that are done once more: those after `step`."""
        for name in (METRICS, VALIDATION):
            rows = self.rows(name)
            kept = [row for row in rows if row["step"] <= step]
            if kept != rows:
                lines = "".join(json.dumps(row) + "\n" for row in kept)
                write_whole(self.path / name, lines.encode())

    def _write_weights(self, which: str, weights: Tensors, said: Weights) -> None:
        tensors = {f"network.{name}": weight.contiguous() for name, weight in weights.items()}
        contents = save(tensors, {SAID: json.dumps(asdict(said))})
        write_whole(self.path / WEIGHTS[which], contents)


def save_together(folders: Sequence[RunFolder], checkpoints: Sequence[Checkpoint]) -> None:
    """Write the checkpoints of runs that are trained together: of all, or of none.

    Runs that stand at one step go on together. Were some of them saved at a later one, they would
    go on alone, and a lone seed rounds otherwise than one of many.
    """
    for folder, checkpoint in zip(folders, checkpoints, strict=True):
        checkpoint.write(folder.path / NEXT)
    settle(folders)
    for folder, checkpoint in zip(folders, checkpoints, strict=True):
        folder.publish(checkpoint)


def settle(folders: Sequence[RunFolder]) -> None:
    """Finish a save that was cut off when all was written, forget it when it was not."""
    waiting = {folder: folder.step(NEXT) for folder in folders}
    newest = max((step for step in waiting.values() if step is not None), default=None)
    whole = all(newest in (step, folder.step()) for folder, step in waiting.items())
    for folder, step in waiting.items():
        if step is not None and whole:
            (folder.path / NEXT).replace(folder.path / CHECKPOINT)
        elif step is not None:
            (folder.path / NEXT).unlink()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a run's folder against other processes; the hold ends with this one, however it ends."""
    path.mkdir(parents=True, exist_ok=True)
    # never what a link leads to
    lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    with os.fdopen(lock, "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BlockingIOError(f"{path}: another process is training this run") from None
        yield


def _write_object(path: Path, contents: Row) -> None:
    write_whole(path, (json.dumps(contents, indent=2) + "\n").encode())
