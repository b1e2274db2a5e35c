"""Scores in half precision beside those in float32: the fast arithmetic must learn as well.

    python benchmarks/precision.py                        # three tasks, both precisions
    python benchmarks/precision.py parity_check --steps 1000

Trains some seeds of PR-LSTM on each task in each precision, scores them at lengths 41 to 500,
prints a line for each, and appends one row for each seed to `--out`.
"""

import tempfile
from pathlib import Path
from typing import Annotated

import torch
import typer
from measure import append_rows, environment

from prlstm.training import Request, RunConfig, score, train

RESULTS = Path(__file__).parent / "results" / "precision.jsonl"
# updates that each task needs
STEPS = {"parity_check": 1000, "missing_duplicate_string": 1000, "cycle_navigation": 4000}


def main(
    tasks: Annotated[list[str] | None, typer.Argument(help=", ".join(STEPS))] = None,
    device: str = "cuda" if torch.cuda.is_available() else "cpu",
    precision: Annotated[str, typer.Option(help="Comma-separated.")] = "float32,bfloat16",
    seeds: int = 4,
    steps: Annotated[int | None, typer.Option(help="By default what the task needs.")] = None,
    hidden: int = 256,
    samples: int = 512,
    out: Path = RESULTS,
) -> None:
    """Train in each precision, and score."""
    target = torch.device(device)
    for task in tasks or STEPS:
        asked = STEPS.get(task, 1000) if steps is None else steps
        for kind in precision.split(","):
            config = RunConfig(
                task=task, model="pr_lstm", hyper_parameters={"hidden_size": hidden}, precision=kind
            )
            configs = [config.with_seed(seed) for seed in range(seeds)]
            request = Request(steps=asked, validate_every=0, samples=samples)
            with tempfile.TemporaryDirectory() as folder:
                folders = train(configs, request, Path(folder), device=target)
                scores = [one.score for one in score(folders, samples=samples, device=target)]
            known = {"task": task, "model": "pr_lstm", "hidden_size": hidden, "precision": kind}
            known |= {"steps": asked, "batch": config.batch_size, "samples": samples}
            append_rows(
                out,
                [
                    environment(target) | known | {"seed": seed, "score": value}
                    for seed, value in enumerate(scores)
                ],
            )
            print(task, kind, f"{asked} steps:", *(f"{value:.4f}" for value in scores), flush=True)


if __name__ == "__main__":
    typer.run(main)
