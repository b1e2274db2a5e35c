"""Time of a training step, one seed and many at once, beside what others take; and of a score.

    python benchmarks/training.py                        # the device at hand
    python benchmarks/training.py --models pr_lstm --lengths 40 --seeds 1,10 --precision tf32

A step is all that the trainer does: sample a batch, forward, backward, clip, Adam, and the metrics,
which are read at the end of a block of steps. A score is 460 lengths x 512 words, hidden size 256
(on a CPU the model and the words of the preset `quick`). Prints a table, and appends one row of
JSON per measurement to `--out`.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import torch
import typer
from measure import Row, append_rows, environment, milliseconds
from rich.console import Console
from rich.table import Table

from prlstm import models
from prlstm.evaluation import evaluate
from prlstm.training import Curriculum, RunConfig, Trainer
from prlstm.training.precision import computing
from prlstm.training.presets import PRESETS

HERE = Path(__file__).parent
RESULTS, ANCHORS = HERE / "results" / "training.jsonl", HERE / "anchors.json"
MODELS = "pr_lstm,lstm,transformer_encoder"
# steps between two readings of the metrics: on a CPU one is long enough
BLOCK = {"cuda": 20, "cpu": 1}


def block_of_steps(
    model: str, task: str, seeds: int, length: int, precision: str, device: torch.device
) -> Callable[[], object]:
    """A block of steps at one length."""
    fixed = Curriculum(kind="fixed", longest=length)
    config = RunConfig(task=task, model=model, curriculum=fixed, precision=precision)
    trainer = Trainer([config.with_seed(seed) for seed in range(seeds)], device)

    def call() -> None:
        trainer.update(BLOCK[device.type])
        trainer.read_metrics()

    return call


def one_product(device: torch.device) -> float:
    """Milliseconds of a product of two 1024 x 1024 matrices: what a CPU is measured by."""
    a, b = torch.randn(2, 1024, 1024, device=device)
    return float(milliseconds(lambda: a @ b, device)["ms"])


def seconds_of_a_score(
    model: str, task: str, seeds: int, precision: str, device: torch.device
) -> Row:
    """How long a score takes."""
    quick = PRESETS["quick"]
    full = device.type == "cuda"
    options, samples = ({}, 512) if full else (quick.hyper_parameters, quick.samples)
    alone = [models.build(model, task, seed=seed, **options) for seed in range(seeds)]
    network = (alone[0] if seeds == 1 else models.Stacked(alone)).to(device)
    with computing(precision, device):
        evaluate(network, [41], 64)
        start = time.perf_counter()
        evaluate(network, samples=samples)
    taken = time.perf_counter() - start
    return {"seconds": round(taken, 3), "samples": samples, "hyper_parameters": options}


def reference(model: str, task: str, length: int, device: torch.device) -> float | None:
    """What the paper's code takes for the same step."""
    known = json.loads(ANCHORS.read_text())[device.type].get(model, {})
    return known.get(str(length)) if task == "parity_check" else None


def main(
    device: str = "cuda" if torch.cuda.is_available() else "cpu",
    names: Annotated[str, typer.Option("--models", help="Comma-separated.")] = MODELS,
    task: str = "parity_check",
    lengths: Annotated[str, typer.Option(help="Comma-separated.")] = "10,20,40",
    seeds: Annotated[str, typer.Option(help="Comma-separated.")] = "1,10",
    precision: str = "float32",
    scores: Annotated[str, typer.Option(help="Models whose score is timed.")] = "pr_lstm",
    out: Path = RESULTS,
) -> None:
    """Measure steps and scores."""
    console, target = Console(), torch.device(device)
    known = environment(target) | {"task": task, "batch": 128, "precision": precision}
    known["product_ms"] = one_product(target)
    table = Table(title=f"{known['device']}, {task}, batch 128, {precision}", box=None)
    for column in ("model", "length", "seeds", "ms a step and seed", "reference"):
        table.add_column(column, justify="left" if column == "model" else "right")
    for name in filter(None, names.split(",")):
        for length in map(int, lengths.split(",")):
            for stack in map(int, seeds.split(",")):
                call = block_of_steps(name, task, stack, length, precision, target)
                row: Row = {"what": "step", "model": name, "length": length, "seeds": stack}
                row |= milliseconds(call, target)
                each = row["ms"] / BLOCK[target.type] / stack
                row |= {"steps": BLOCK[target.type], "ms_per_step_and_seed": round(each, 4)}
                row["reference_ms"] = reference(name, task, length, target)
                append_rows(out, [row | known])
                beside = "-" if row["reference_ms"] is None else f"{row['reference_ms']:.2f}"
                cells = (str(length), str(stack), f"{each:.3f}", beside)
                table.add_row(name, *cells)
                console.print(name, *cells, highlight=False)
    for name in filter(None, scores.split(",")):
        row = {"what": "score", "model": name, "seeds": 1}
        row |= seconds_of_a_score(name, task, 1, precision, target)
        append_rows(out, [row | known])
        console.print(f"a score of {name}: {row['seconds']:.1f} s", highlight=False)
    console.print(table)
    console.print(f"Rows appended to {out}")


if __name__ == "__main__":
    typer.run(main)
