"""Time and memory of every model: forward, and a whole training step.

    python benchmarks/models.py                          # the device at hand
    python benchmarks/models.py --models lstm,pr_lstm --lengths 40 --seeds 1,10

A training step is forward, loss, backward, clipping and Adam on a batch that is there already.
With more seeds than one they are stacked, and the time is that of all of them. Prints a table, and
appends one row of JSON per measurement to `--out`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import torch
import typer
from measure import Row, append_rows, environment, milliseconds, peak_bytes
from rich.console import Console
from rich.table import Table

from prlstm import models, tasks

RESULTS = Path(__file__).parent / "results" / "models.jsonl"


def calls(
    name: str, task: tasks.Task, seeds: int, batch: int, length: int, device: torch.device
) -> dict[str, Callable[[], object]]:
    """What is measured of one model at one length."""
    alone = [models.build(name, task, seed=seed) for seed in range(seeds)]
    model = (alone[0] if seeds == 1 else models.Stacked(alone)).to(device)
    generator = torch.Generator().manual_seed(0)
    drawn = task.sample(seeds * batch, length, generator=generator, device=device)
    shape = (batch,) if seeds == 1 else (seeds, batch)
    words, target = (part.view(*shape, -1) for part in (drawn.input, drawn.target))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)

    def forward() -> None:
        model.eval()
        with torch.no_grad():
            model(words)

    def train() -> None:
        model.train()
        optimizer.zero_grad()
        logits = model(words, target=target).flatten(0, -3)
        # of all seeds together: the sum of their losses
        (seeds * tasks.loss(logits, target.flatten(0, -2))).backward()
        model.clip_gradients(1.0)
        optimizer.step()

    return {"forward": forward, "train": train}


def measure(call: Callable[[], object], device: torch.device) -> Row:
    """One measurement; running out of memory is a result too."""
    try:
        return milliseconds(call, device) | {"peak_bytes": peak_bytes(call, device)}
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return {"ms": None, "repeats": 0, "peak_bytes": None, "failed": "out of memory"}


def shown(row: Row) -> str:
    """Time and memory of a row."""
    if row["ms"] is None:
        return str(row["failed"])
    memory = "?" if row["peak_bytes"] is None else f"{row['peak_bytes'] / 2**20:,.0f}"
    return f"{row['ms']:,.{0 if row['ms'] >= 100 else 1}f} ms, {memory} MB"


def main(
    device: str = "cuda" if torch.cuda.is_available() else "cpu",
    names: Annotated[str, typer.Option("--models", help="Comma-separated.")] = ",".join(
        models.names()
    ),
    task: str = "parity_check",
    lengths: Annotated[str, typer.Option(help="Comma-separated.")] = "40,500",
    seeds: Annotated[str, typer.Option(help="Comma-separated.")] = "1",
    batch: int = 128,
    out: Path = RESULTS,
) -> None:
    """Measure the models."""
    console, target, chosen = Console(), torch.device(device), tasks.get(task)
    known = environment(target) | {"task": task, "batch": batch}
    table = Table(title=f"{known['device']}, {task}, batch {batch}", box=None)
    for column in ("model", "length", "seeds", "forward", "train"):
        table.add_column(column, justify="left" if column == "model" else "right", no_wrap=True)
    for name in names.split(","):
        for length in map(int, lengths.split(",")):
            for stack in map(int, seeds.split(",")):
                cells = []
                for what, call in calls(name, chosen, stack, batch, length, target).items():
                    row: Row = {"model": name, "what": what, "length": length, "seeds": stack}
                    row |= measure(call, target)
                    append_rows(out, [row | known])
                    cells.append(shown(row))
                table.add_row(name, str(length), str(stack), *cells)
                console.print(f"{name} {length} {stack}: {'; '.join(cells)}", highlight=False)
    console.print(table)
    console.print(f"Rows appended to {out}")


if __name__ == "__main__":
    typer.run(main)
