"""One sequence over several ranks, on this machine: time, and bytes that the ranks send.

    python benchmarks/distributed.py

Ranks are processes of one thread each, that exchange by gloo. A call is timed on all ranks at once,
from a barrier until the slowest has done; `ms_least` is the fastest of the repeats. On a machine
with other work (`load` tells how many processes wanted a core) compare `processor_ms`: how long the
busiest rank had one, the least of the repeats. Outputs are compared with those of one process in
float64. `train` is forward, backward, and the sum of the weights' gradients;
`sent_bytes` is without that sum. `exchange` is one exchange of states of so many bytes, alone.
Prints a line for each row, and appends the rows to `--out`.
"""

import copy
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
import typer
from kernels import relative_error
from measure import Row, append_rows, environment

from prlstm import PRLSTM
from prlstm.distributed import SplitSequence, partition, sum_gradients
from prlstm.distributed.sequence.exchange import gathered
from prlstm.distributed.sequence.ranks import Ranks
from prlstm.distributed.sequence.work import work

RESULTS = Path(__file__).parent / "results" / "distributed.jsonl"
CPU = torch.device("cpu")
FEATURES = 8
WORLDS, LENGTHS = "1,2,3,4", "4096,10007,16384,40009"
# numbers of one exchange alone
NUMBERS = (1, 256, 4096, 65_536, 1_048_576)


def timed(call: Callable[[], object], seconds: float) -> Row:
    """What the slowest rank took, over and over: all ranks get the same numbers."""
    taken: list[float] = []
    busy: list[float] = []
    while len(taken) < 3 or (sum(taken) < 1e3 * seconds and len(taken) < 100):
        dist.barrier()
        start, used = time.perf_counter(), time.process_time()
        call()
        ends = torch.tensor([time.perf_counter() - start, time.process_time() - used])
        dist.all_reduce(ends, dist.ReduceOp.MAX)
        for times, end in zip((taken, busy), ends.tolist(), strict=True):
            times.append(1e3 * end)
    low, middle, high = statistics.quantiles(taken, n=4, method="inclusive")
    return {
        "ms": round(middle, 4),
        "ms_quartiles": [round(low, 4), round(high, 4)],
        "ms_least": round(min(taken), 4),
        "processor_ms": round(min(busy), 4),
        "repeats": len(taken),
        "load": round(os.getloadavg()[0], 1),
    }


def sequences(rank: int, world: int, length: int, hidden: int, seconds: float) -> list[Row]:
    """The three ways to read a sequence."""
    torch.manual_seed(0)
    layer = PRLSTM(FEATURES, hidden, batch_first=True)
    x = torch.randn(1, length, FEATURES)
    parts = partition(length, world)
    lengths, mine = [len(part) for part in parts], parts[rank]
    split, part = SplitSequence(layer), x[:, mine.start : mine.stop]

    def read(output: str) -> torch.Tensor:
        with torch.no_grad():
            return split(part, output=output)[0]

    def train() -> None:
        layer.zero_grad()
        split(part)[0].square().sum().backward()
        sum_gradients(layer)

    calls = {"last": lambda: read("last"), "all": lambda: read("all"), "train": train}
    with torch.no_grad():
        exact = copy.deepcopy(layer).double()(x.double())[0]
    made = []
    for what, call in calls.items():
        before = split.ranks.sent_bytes
        call()
        sent = split.ranks.sent_bytes - before
        got = read("last" if what == "last" else "all")
        want = exact[:, -1] if what == "last" else exact[:, mine.start : mine.stop]
        counted = [work(lengths, r, last=what == "last") for r in range(world)]
        most = max(counted, key=lambda one: one.merges)
        known = {
            "what": what, "world": world, "length": length, "batch": 1, "hidden_size": hidden,
            "cores": os.cpu_count(), "merges": most.merges, "tokens": most.tokens,
            "calls": most.calls, "exchanges": most.exchanges, "states": most.states,
            "sent_bytes": sent, "error": relative_error(got, want),
        }  # fmt: skip
        made.append(known | timed(call, seconds))
    return made


def exchanges(world: int, seconds: float) -> list[Row]:
    """States of all sizes, handed around alone."""
    made, ranks = [], Ranks()
    for numbers in NUMBERS:
        node = (torch.zeros(1, 1, numbers),)
        known = {
            "what": "exchange", "world": world, "cores": os.cpu_count(), "sent_bytes": 4 * numbers,
        }  # fmt: skip
        made.append(known | timed(lambda node=node: gathered(ranks, node), seconds / 4))
    return made


def ranks_together(
    rank: int, world: int, folder: str, lengths: list[int], hidden: int, seconds: float, out: Path
) -> None:
    """What one rank does; the first one writes the rows."""
    torch.set_num_threads(1)
    meet = f"file://{folder}/{world}"
    dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=world)
    known = environment(CPU)
    groups = [exchanges(world, seconds)]
    groups += [sequences(rank, world, length, hidden, seconds) for length in lengths]
    for row in (known | row for rows in groups for row in rows):
        if rank == 0:
            append_rows(out, [row])
            names = (
                "what",
                "world",
                "length",
                "ms",
                "ms_least",
                "processor_ms",
                "sent_bytes",
                "error",
            )
            print(*(f"{name}={row[name]}" for name in names if name in row), flush=True)
    dist.destroy_process_group()


def main(
    out: Path = RESULTS,
    worlds: Annotated[str, typer.Option(help="Numbers of ranks.")] = WORLDS,
    lengths: Annotated[str, typer.Option(help="Numbers of tokens.")] = LENGTHS,
    hidden: Annotated[int, typer.Option(help="Hidden size.")] = 64,
    seconds: Annotated[float, typer.Option(help="How long a call is repeated.")] = 2.0,
) -> None:
    """Measure a sequence over several ranks."""
    sizes = [int(length) for length in lengths.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        for world in map(int, worlds.split(",")):
            given = (world, folder, sizes, hidden, seconds, out)
            processes.spawn(ranks_together, given, nprocs=world)


if __name__ == "__main__":
    typer.run(main)
