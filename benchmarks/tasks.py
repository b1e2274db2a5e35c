"""Samples per second of every task, at two lengths and two batch sizes.

    python benchmarks/tasks.py                # the device at hand
    python benchmarks/tasks.py --tasks parity_check,solve_equation --lengths 40

Every call draws its uniform numbers and makes words, answers and masks of them. On a CUDA device
each is measured twice: as it stands, and replayed from a CUDA graph. Prints a table, and appends
one row of JSON per measurement to `--out`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import torch
import typer
from measure import Row, append_rows, environment, milliseconds
from rich.console import Console
from rich.table import Table

from prlstm import tasks
from prlstm.tasks import Task

RESULTS = Path(__file__).parent / "results" / "tasks.jsonl"


def eager(task: Task, batch: int, length: int, device: torch.device) -> Callable[[], object]:
    """One batch, as a user asks for it."""
    generator = torch.Generator(device).manual_seed(0)
    return lambda: task.sample(batch, length, generator=generator)


def captured(task: Task, batch: int, length: int, device: torch.device) -> Callable[[], object]:
    """One batch from a graph: new numbers are written where the graph reads them."""
    generator = torch.Generator(device).manual_seed(0)
    numbers = torch.rand(batch, task.draws(task.input_length(length)), device=device)
    task.sample_from(numbers, length)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        task.sample_from(numbers, length)

    def replay() -> None:
        numbers.uniform_(generator=generator)
        graph.replay()

    return replay


def main(
    device: str = "cuda" if torch.cuda.is_available() else "cpu",
    names: Annotated[str, typer.Option("--tasks", help="Comma-separated.")] = ",".join(
        tasks.names()
    ),
    lengths: Annotated[str, typer.Option(help="Comma-separated.")] = "40,500",
    batches: Annotated[str, typer.Option(help="Comma-separated.")] = "128,4096",
    out: Path = RESULTS,
) -> None:
    """Measure the samplers."""
    console, target = Console(), torch.device(device)
    known = environment(target)
    ways = {"eager": eager} | ({"captured": captured} if target.type == "cuda" else {})
    cases = [
        (length, batch, way)
        for length in map(int, lengths.split(","))
        for batch in map(int, batches.split(","))
        for way in ways
    ]
    table = Table(
        title=f"1,000 samples per second: {known['device']}", box=None, padding=(0, 1, 0, 0)
    )
    table.add_column("task", no_wrap=True)
    for length, batch, way in cases:
        table.add_column(f"{way}\n{length}\n{batch}", justify="right")
    for name in names.split(","):
        speeds = []
        for length, batch, way in cases:
            call = ways[way](tasks.get(name), batch, length, target)
            row: Row = {"task": name, "length": length, "batch": batch, "way": way}
            row |= milliseconds(call, target)
            row["samples_per_s"] = round(1e3 * batch / row["ms"])
            append_rows(out, [row | known])
            speeds.append(f"{row['samples_per_s'] / 1e3:,.0f}")
        table.add_row(name, *speeds)
        console.print(f"{name}: {', '.join(speeds)}", highlight=False)
    console.print(table)
    console.print("columns: how, length, batch")
    console.print(f"Rows appended to {out}")


if __name__ == "__main__":
    typer.run(main)
