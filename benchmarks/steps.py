"""Captured training steps of PR-LSTM on a CUDA device: the mean over lengths 1 to 40, many seeds.

    python benchmarks/steps.py                     # all parts
    python benchmarks/steps.py parity baselines    # some of them

A step is all that the trainer does: sample a batch of 128, forward, backward, clip, Adam, metrics.
Lengths are timed in turn, blocks of steps of each; `ready_s` is how long the first step of every
length and its capture took together. The same run compares weights after some captured steps of a
few lengths with those after as many steps made operation by operation. A start-up is a process of
its own, with an empty cache of compiled kernels. Prints a line for each row, and appends the rows
to `--out`.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import torch
import typer
from measure import Row, append_rows, environment

from prlstm import tasks
from prlstm.training import Curriculum, RunConfig, Trainer

RESULTS = Path(__file__).parent / "results" / "steps.jsonl"
DEVICE = torch.device("cuda")
ALL, SOME = range(1, 41), (8, 20, 32)
# lengths of which steps are compared with those that are not captured
COMPARED = (3, 20, 40)
# timed steps of a block, and blocks of which the median is taken
STEPS, BLOCKS = 10, 5
# what the process of a start-up does: all lengths once, from the first kernel on
START = """
import sys, time, steps, torch
trainer, _ = steps.trainers("parity_check", int(sys.argv[2]), "bfloat16", sys.argv[1])
torch.cuda.synchronize()
start = time.perf_counter()
for length in steps.ALL:
    trainer.curriculum = steps.Curriculum(kind="fixed", longest=length)
    trainer.update()
torch.cuda.synchronize()
print(time.perf_counter() - start)
"""


def trainers(
    task: str, seeds: int, precision: str, model: str, **given: bool
) -> tuple[Trainer, list[RunConfig]]:
    """Fresh seeds, stacked."""
    config = RunConfig(task=task, model=model, precision=precision)
    runs = [config.with_seed(seed) for seed in range(seeds)]
    return Trainer(runs, DEVICE, **given), runs


def at_length(trainer: Trainer, length: int) -> Callable[[], None]:
    """A block of steps at one length."""
    fixed = Curriculum(kind="fixed", longest=length)

    def call() -> None:
        kept, trainer.curriculum = trainer.curriculum, fixed
        trainer.update(STEPS)
        trainer.curriculum = kept

    return call


def milliseconds(call: Callable[[], None]) -> float:
    """The median time of a step; metrics are read between blocks, as training does."""
    taken = []
    for _ in range(BLOCKS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        taken.append(1e3 * (time.perf_counter() - start) / STEPS)
    return statistics.median(taken)


def step(
    task: str,
    seeds: int,
    lengths: Sequence[int],
    precision: str = "bfloat16",
    model: str = "pr_lstm",
) -> Row:
    """One row: the mean over lengths."""
    trainer, _ = trainers(task, seeds, precision, model)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for length in lengths:
        at_length(trainer, length)()
    torch.cuda.synchronize()
    ready = time.perf_counter() - start
    each = []
    for length in lengths:
        each.append(milliseconds(at_length(trainer, length)))
        trainer.read_metrics()
    mean = statistics.mean(each)
    return {
        "what": "step", "how": "captured", "task": task, "model": model, "seeds": seeds,
        "batch": 128, "precision": precision, "hidden_size": 256,
        "lengths": "1-40" if lengths == ALL else ",".join(map(str, lengths)),
        "ms": round(mean, 4), "ms_per_step_and_seed": round(mean / seeds, 4),
        "ms_of_lengths": [round(ms, 4) for ms in each], "ready_s": round(ready, 2),
    }  # fmt: skip


def difference(task: str, seeds: int, precision: str = "bfloat16", model: str = "pr_lstm") -> float:
    """The greatest difference of a weight after steps that were captured, and that were not."""
    both = [trainers(task, seeds, precision, model, capture=on)[0] for on in (True, False)]
    for trainer in both:
        for length in COMPARED:
            at_length(trainer, length)()
    pairs = zip(*(trainer.model.parameters() for trainer in both), strict=True)
    return max(float((one - other).abs().max()) for one, other in pairs)


def parity() -> list[Row]:
    """One seed and ten."""
    rows = [step("parity_check", seeds, ALL) for seeds in (1, 10)]
    return [row | {"difference": difference("parity_check", row["seeds"])} for row in rows]


def duplicate() -> list[Row]:
    """Long answers."""
    worst = difference("duplicate_string", 10)
    rows = [step("duplicate_string", 10, lengths) for lengths in ((40,), ALL)]
    return [row | {"difference": worst} for row in rows]


def every_task() -> list[Row]:
    """All of them, at some lengths."""
    return [step(task, 10, SOME) for task in tasks.names()]


def baselines() -> list[Row]:
    """Other models."""
    names = ("lstm", "transformer_encoder")
    return [
        step("parity_check", seeds, (20,), model=name)
        | {"difference": difference("parity_check", seeds, model=name)}
        for name in names
        for seeds in (1, 10)
    ]


def start_up() -> list[Row]:
    """All 40 lengths made ready, nothing compiled before."""
    return [_start_up(*case) for case in (("pr_lstm", 1), ("pr_lstm", 10), ("lstm", 10),
                                          ("transformer_encoder", 10))]  # fmt: skip


def _start_up(model: str, seeds: int) -> Row:
    here = Path(__file__).parent
    with tempfile.TemporaryDirectory() as empty:
        paths = [str(here), str(here.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        known = {"TRITON_CACHE_DIR": empty, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        command = [sys.executable, "-c", START, model, str(seeds)]
        said = subprocess.run(
            command, env=os.environ | known, capture_output=True, text=True, check=True
        ).stdout
    return {
        "what": "start-up", "task": "parity_check", "model": model, "seeds": seeds, "batch": 128,
        "precision": "bfloat16", "hidden_size": 256, "lengths": "1-40",
        "seconds": round(float(said.splitlines()[-1]), 2),
    }  # fmt: skip


PARTS: dict[str, Callable[[], list[Row]]] = {
    "parity": parity,
    "duplicate": duplicate,
    "tasks": every_task,
    "baselines": baselines,
    "start-up": start_up,
}


def main(
    parts: Annotated[list[str] | None, typer.Argument(help=", ".join(PARTS))] = None,
    out: Path = RESULTS,
) -> None:
    """Measure captured steps."""
    for part in parts or PARTS:
        if part not in PARTS:
            raise typer.BadParameter(f"{part!r}: expected some of {', '.join(PARTS)}")
    if not torch.cuda.is_available():
        raise typer.BadParameter("steps are captured on a CUDA device")
    for part in parts or PARTS:
        rows = [environment(DEVICE) | row for row in PARTS[part]()]
        append_rows(out, rows)
        for row in rows:
            names = ("model", "task", "seeds", "lengths", "precision", "ms_per_step_and_seed")
            shown = [name for name in (*names, "ready_s", "seconds") if name in row]
            print(*(f"{name}={row[name]}" for name in shown), flush=True)


if __name__ == "__main__":
    typer.run(main)
