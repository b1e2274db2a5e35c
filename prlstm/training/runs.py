"""Runs on disk: one folder each, named by the content of its configuration.

    config.json              what was run, and with what it was made
    metrics.jsonl            one row for each block of steps
    checkpoint.safetensors   all that the run needs to go on
    model.safetensors        the weights, for `prlstm.load`

Files are written whole; rows are appended, and a row that was cut off does not count.
"""

import fcntl
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save

from prlstm.environment import environment
from prlstm.files import write_whole
from prlstm.training.checkpoint import Checkpoint
from prlstm.training.config import RunConfig

CONFIG, METRICS, CHECKPOINT = "config.json", "metrics.jsonl", "checkpoint.safetensors"
MODEL, LOCK = "model.safetensors", ".lock"

Row = dict[str, Any]


@dataclass(frozen=True)
class RunFolder:
    """One run, in the folder `path`."""

    path: Path
    config: RunConfig

    @staticmethod
    def create(root: Path, config: RunConfig, device: torch.device) -> "RunFolder":
        """The folder of a run below `root`, made if it is not there."""
        path = root / config.name
        if (path / CONFIG).exists():
            return RunFolder.open(path)
        path.mkdir(parents=True, exist_ok=True)
        contents = config.as_json() | {"made_with": environment(device)}
        write_whole(path / CONFIG, (json.dumps(contents, indent=2) + "\n").encode())
        return RunFolder(path, config)

    @staticmethod
    def open(path: Path) -> "RunFolder":
        """A run that is there."""
        if not (path / CONFIG).is_file():
            raise FileNotFoundError(f"{path}: expected the folder of a run, with {CONFIG} in it")
        try:
            contents = json.loads((path / CONFIG).read_text())
            contents.pop("made_with", None)
            config = RunConfig.from_json(contents)
        except (AttributeError, TypeError, ValueError) as wrong:
            raise ValueError(f"{path / CONFIG}: not the configuration of a run ({wrong})") from None
        if config.name != path.name:
            raise ValueError(
                f"{path / CONFIG}: the configuration of {config.name}, expected {path.name}: "
                "it was changed, or the folder was renamed"
            )
        return RunFolder(path, config)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run against other processes; the hold ends with this one, however it ends."""
        with (self.path / LOCK).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise RuntimeError(f"{self.path}: another process is training this run") from None
            yield

    def save(self, checkpoint: Checkpoint) -> None:
        """Write the checkpoint, then the weights that it holds."""
        checkpoint.write(self.path / CHECKPOINT)
        # as `prlstm.load` knows them
        weights = {f"network.{name}": w.contiguous() for name, w in checkpoint.weights.items()}
        write_whole(self.path / MODEL, save(weights))

    def checkpoint(self) -> Checkpoint | None:
        """Where the run stands; None before its first checkpoint."""
        path = self.path / CHECKPOINT
        return Checkpoint.read(path) if path.exists() else None

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows of metrics."""
        with (self.path / METRICS).open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)

    def metrics(self) -> list[Row]:
        """All whole rows of metrics."""
        path = self.path / METRICS
        return read_rows(path) if path.exists() else []

    def forget_after(self, step: int) -> None:
        """Drop the rows of steps that are done once more: those after `step`."""
        kept = [row for row in self.metrics() if row["step"] <= step]
        write_whole(self.path / METRICS, "".join(json.dumps(row) + "\n" for row in kept).encode())


def read_rows(path: Path) -> list[Row]:
    """The rows of a file of JSON lines; the last one does not count if it was cut off."""
    lines = path.read_text().split("\n")
    rows = []
    # behind the last end of a line there is nothing, or a row that was cut off
    for number, line in enumerate(lines[:-1], 1):
        try:
            row = json.loads(line)
        except ValueError:
            raise ValueError(f"{path}, line {number}: not a row ({line!r:.60})") from None
        if not isinstance(row, dict):
            raise ValueError(f"{path}, line {number}: not a row ({line!r:.60})")
        rows.append(row)
    return rows
