"""A whole folder of results, made up: `python -m tests.report.made_results FOLDER`.

The scores are near the paper's, so that the page looks as it will; no number is measured.
"""

import math
import random
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from prlstm import tasks
from prlstm.files import Row, append_rows
from prlstm.report.columns import FIGURE3 as FIGURE3_COLUMNS
from prlstm.report.columns import TABLE2, TABLE3, Column
from prlstm.report.paper import tables
from prlstm.report.rows import CURVES, FIGURE3, GRADIENTS, GROWTH, SCALING, SCORES

GPU = {
    "device": "NVIDIA H200", "threads": 16, "python": "3.12.3", "torch": "2.11.0+cu130",
    "cuda": "13.0", "prlstm": "0.1.0", "commit": "abc1234", "date": "2026-01-02",
}  # fmt: skip
CPU = GPU | {"device": "AMD EPYC", "threads": 2, "cuda": None, "torch": "2.13.0+cpu"}
LENGTHS = range(41, 501)


def write_results(folder: Path, seeds: int = 10, samples: int = 64) -> None:
    """Rows of every file, as those of the whole paper would be."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {
        SCORES: chain(scores(seeds, samples), small(samples)),
        CURVES: curves(seeds),
        FIGURE3: figure3(),
        SCALING: scaling(),
        GROWTH: growth(),
        GRADIENTS: gradients(),
    }
    for name, rows in made.items():
        append_rows(folder / name, ({"schema": 1, **row} for row in rows))


def cells() -> Iterator[tuple[str, Column, float, random.Random]]:
    """Every cell of the tables, the share that the paper has, and random numbers of its own."""
    for table, columns in (("table2", TABLE2), ("table3", TABLE3)):
        for column in columns:
            if column.name in ("pr_lstm_1R",):
                # the same runs as in Table 2
                continue
            for task in tasks.names():
                share = tables()[table][column.name][task] / 100
                yield task, column, share, random.Random(f"{task} {column.name}")


def known(task: str, column: Column, seed: int, **setting: Any) -> Row:
    """What tells a run."""
    own = {**column.setting, **setting}
    name = f"{task}-{column.name}-s{seed}"
    return {
        "run": name, "task": task, "model": column.model, "setting": own, "seed": seed,
        "made_with": GPU,
    }  # fmt: skip


def scores(seeds: int, samples: int) -> Iterator[Row]:
    """Runs that are right at short words, and lose what they do not know with the length."""
    for task, column, share, draw in cells():
        floor = tasks.get(task).floors.best
        for seed in range(seeds):
            goal = max(floor, share - abs(draw.gauss(0, 0.06)) * (seed > 0))
            correct = [counts(goal, floor, length, samples, draw) for length in LENGTHS]
            right = sum(map(sum, correct)) / (len(LENGTHS) * samples)
            yield known(task, column, seed, precision="bfloat16") | {
                "weights": "last", "step": 1_000_000, "seconds": 700.0, "samples": samples,
                "lengths": [[41, 500]], "score": right, "correct": correct,
                "total": [64] * len(LENGTHS),
            }  # fmt: skip


def small(samples: int) -> Iterator[Row]:
    """Small models, each with settings of its own, and one that failed."""
    for number, task in enumerate(tasks.names()[:4]):
        draw = random.Random(task)
        floor = tasks.get(task).floors.best
        own = {
            "hidden_size": 32 * (number + 1), "schedule.kind": "cosine", "schedule.rate": 0.003,
            "schedule.decay_steps": 3000, "curriculum.kind": "increasing", "curriculum.every": 20,
        }  # fmt: skip
        correct = [counts(0.99, floor, length, samples, draw) for length in LENGTHS]
        run = known(task, TABLE2[-1], 0, **own)
        run |= {"run": f"{task}-small", "made_with": CPU}
        yield run | {
            "weights": "last", "step": 3000, "seconds": 300.0, "samples": samples,
            "lengths": [[41, 500]], "correct": correct, "total": [64] * len(LENGTHS),
            "score": sum(map(sum, correct)) / (len(LENGTHS) * samples),
        }  # fmt: skip
        yield run | {"seed": 1, "weights": "none", "step": 7, "failed": "the loss is nan"}


def counts(goal: float, floor: float, length: int, samples: int, draw: random.Random) -> list[int]:
    """Right answers of sub-batches: the mean over all lengths is about the goal."""
    steep = 6 * (1 - goal) / max(1e-9, 1 - floor)
    share = floor + (1 - floor) * math.exp(-steep * (length - 41) / 200)
    share = max(0.0, min(1.0, share + draw.gauss(0, 0.3 * (1 - share) * share)))
    return [round(64 * share)] * (samples // 64)


def curves(seeds: int) -> Iterator[Row]:
    """Losses that fall to what a score leaves."""
    for task, column, share, draw in cells():
        for seed in range(seeds):
            steps = [5000 * k for k in range(1, 201)]
            yield known(task, column, seed, precision="bfloat16") | fallen(steps, share, draw)


def fallen(steps: list[int], share: float, draw: random.Random, per_s: float = 2000) -> Row:
    """A curve of training."""
    end, slow = 0.02 + 0.8 * (1 - share), draw.uniform(5e3, 5e4) * (2 - share)
    loss = [
        round((end + (1 - end) * math.exp(-step / slow)) * math.exp(draw.gauss(0, 0.1)), 6)
        for step in steps
    ]
    return {
        "step": steps, "seconds": [round(step / per_s, 2) for step in steps], "loss": loss,
        "accuracy": [round(max(0.0, 1 - 0.6 * one), 6) for one in loss],
    }  # fmt: skip


def figure3() -> Iterator[Row]:
    """One run of three models, with times that differ."""
    speeds = {"pr_lstm": 3100.0, "lstm": 700.0, "transformer_encoder": 260.0}
    for task, column, share, draw in cells():
        if column in FIGURE3_COLUMNS:
            steps = [200 * k for k in range(1, 201)]
            yield known(task, column, 0) | fallen(steps, share, draw, speeds[column.model])


def scaling() -> Iterator[Row]:
    """Curves that end in every way, on two devices."""
    some = {
        "PR-LSTM": (0.0007, 0.008, "time", 1 << 20), "PR-LSTM, called": (0.002, 0.008, "", 1 << 20),
        "PR-LSTM, op by op": (0.35, 0.7, "memory", 2500), "LSTM": (0.012, 0.02, "refused", 65536),
        "LSTM, op by op": (0.3, 0.04, "time", 2000), "Transformer encoder": (0.06, 0.03, "", 4096),
    }  # fmt: skip
    for made_with, slower, batch in ((GPU, 1.0, 1024), (CPU, 40.0, 64)):
        for label, (ms, gb, end, last) in some.items():
            lengths = (1, 5, 25, 100, 500, 1000, 2000, *(4096 << k for k in range(9)))
            there = [n for n in lengths if n <= last]
            for length in there:
                power = 1.9 if "Transformer" in label else 1.0
                over = {
                    "ms_mean": slower * (0.2 + ms * length**power / (40 if power > 1 else 1)),
                    "peak_bytes": 1e9 * (0.05 + gb * length),
                    "batches": 100, "end": end if length == there[-1] else "",
                }  # fmt: skip
                if over["end"] in ("memory", "refused"):
                    over |= {"ms_mean": None, "peak_bytes": None, "batches": 0}
                yield {
                    "task": "parity_check", "curve": label, "label": label, "length": length,
                    "model": "transformer_encoder" if "Transformer" in label else "lstm",
                    "hidden_size": None if "Transformer" in label else 256, "batch": batch,
                    "stop_ms": 500.0, "seconds": None, "made_with": made_with, **over,
                }  # fmt: skip


def growth() -> Iterator[Row]:
    """Times of one sequence, on two devices."""
    powers = {"lstm": 1.0, "pr_lstm_all": 0.2, "pr_lstm_last": 0.12, "transformer_encoder": 1.7}
    for made_with in (GPU, CPU):
        for model, power in powers.items():
            for length in (64 << k for k in range(11)):
                ms = 0.3 + 0.01 * length ** (power if made_with is GPU else max(1.0, power))
                yield {
                    "model": model, "length": length, "batch": 1, "hidden_size": 256, "ms": ms,
                    "made_with": made_with,
                }  # fmt: skip


def gradients() -> Iterator[Row]:
    """Norms that fall fast, and norms that do not."""
    for model, rate in (("pr_lstm", 0.01), ("lstm", 0.2)):
        for seed in range(3):
            for length in (256, 255):
                norms = [0.1 * math.exp(-rate * k) for k in range(length)]
                yield {
                    "model": model, "run": None, "seed": seed, "hidden_size": 256,
                    "length": length, "norms": norms, "made_with": CPU,
                }  # fmt: skip


if __name__ == "__main__":
    write_results(Path(sys.argv[1]), samples=int(sys.argv[2]) if len(sys.argv) > 2 else 64)
