"""Groups of processes that run the same cases together, and what each rank found.

python -m tests.distributed.sequence_ranks FOLDER WORLD TIMEOUT CASE,CASE... [WORLD TIMEOUT ...]
"""

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Sequence
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent


class Group(NamedTuple):
    """So many ranks, how long they wait for each other, and the cases that they run in turn."""

    world: int
    timeout_s: int
    cases: tuple[str, ...]


def together(folder: Path, groups: Sequence[Group]) -> dict[tuple[int, str], list[str]]:
    """What every rank said of every case: nothing where all was right, else a traceback."""
    command = [sys.executable, "-m", "tests.distributed.sequence_ranks", str(folder)]
    for group in groups:
        command += [str(group.world), str(group.timeout_s), ",".join(group.cases)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=150,
    )
    said = {}
    for n, group in enumerate(groups):
        for case in group.cases:
            said[group.world, case] = [_found(folder / f"{n}.{r}.json", case, done.stderr)
                                       for r in range(group.world)]  # fmt: skip
    return said


def _found(path: Path, case: str, log: str) -> str:
    known = json.loads(path.read_text()) if path.exists() else {}
    return str(known.get(case, f"{path.stem} did not come so far:\n{log[-4000:]}"))


def main(folder: Path, groups: Sequence[Group]) -> None:
    """One group after the other."""
    # what is imported here, before there are threads, no rank has to import
    from tests.distributed import sequence_cases

    assert sequence_cases
    for n, group in enumerate(groups):
        context = get_context("fork")
        ranks = [
            context.Process(target=run, args=(folder, n, group, rank), daemon=True)
            for rank in range(group.world)
        ]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join(60)
            rank.kill()


def run(folder: Path, n: int, group: Group, rank: int) -> None:
    """One rank: every case in turn, until one fails."""
    import torch
    import torch.distributed as dist

    from tests.distributed import sequence_cases

    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/{n}.meet",
        rank=rank,
        world_size=group.world,
        timeout=timedelta(seconds=group.timeout_s),
    )
    said: dict[str, str] = {}
    for case in group.cases:
        torch.manual_seed(0)
        try:
            getattr(sequence_cases, case)(rank, group.world)
            said[case] = ""
        except Exception:
            said[case] = f"rank {rank} of {group.world}:\n{traceback.format_exc()}"
        (folder / f"{n}.{rank}.json").write_text(json.dumps(said))
        if said[case]:
            # the others have lost this one
            os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    folder, *rest = sys.argv[1:]
    main(
        Path(folder),
        [
            Group(int(world), int(timeout), tuple(cases.split(",")))
            for world, timeout, cases in zip(rest[::3], rest[1::3], rest[2::3], strict=True)
        ],
    )
