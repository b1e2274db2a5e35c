"""Rows of scores, made up."""

from typing import Any

from prlstm.files import Row

MADE_WITH = {"device": "a device", "threads": 2, "cuda": None, "torch": "2", "commit": "abc"}


def score_row(
    task: str = "parity_check",
    model: str = "pr_lstm",
    seed: int = 0,
    step: int = 1000,
    score: float = 0.75,
    weights: str = "last",
    samples: int = 128,
    **setting: Any,
) -> Row:
    """A run whose sub-batches all score the same, to the nearest of 64 answers."""
    batches = samples // 64
    right = round(64 * score)
    name = "-".join([task, model, *(f"{k}{v}" for k, v in sorted(setting.items())), f"s{seed}"])
    return {
        "schema": 1, "run": name, "task": task, "model": model, "setting": setting,
        "seed": seed, "weights": weights, "step": step, "seconds": step / 100, "samples": samples,
        "lengths": [[41, 500]], "score": right / 64, "correct": [[right] * batches] * 460,
        "total": [64] * 460, "made_with": MADE_WITH,
    }  # fmt: skip


def failed_row(seed: int, why: str = "the loss is nan", **more: Any) -> Row:
    """A run that failed."""
    row = score_row(seed=seed, **more)
    kept = ("schema", "run", "task", "model", "setting", "seed", "made_with")
    return {name: row[name] for name in kept} | {"weights": "none", "step": 7, "failed": why}


def curve_row(task: str, model: str, count: int = 5, seed: int = 0, **setting: Any) -> Row:
    """A curve that falls."""
    row = score_row(task, model, seed, **setting)
    kept = ("schema", "run", "task", "model", "setting", "seed", "made_with")
    steps = [100 * k for k in range(1, count + 1)]
    return {name: row[name] for name in kept} | {
        "step": steps,
        "seconds": [step / 50 for step in steps],
        "loss": [1 / step for step in steps],
        "accuracy": [0.5] * count,
    }
