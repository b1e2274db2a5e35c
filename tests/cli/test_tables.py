"""Results of runs, as a terminal shows them."""

import io
from pathlib import Path

import torch
from rich.console import Console

from prlstm.cli.tables import print_results
from prlstm.evaluation import LengthCounts
from prlstm.training import RunConfig
from prlstm.training.results import Result, Score


def shown(task: str, right: int) -> str:
    """A run that answered so many of 1000 right, at one length."""
    counts = LengthCounts((41,), torch.tensor([[right]]), torch.tensor([[1000]]))
    config = RunConfig(task=task, model="lstm")
    scores = {"last": Score(10, 64, counts)}
    one = Result(Path("run"), config, 10, 0.5, 0.9, 1.0, scores, 10, True)
    out = io.StringIO()
    print_results(Console(file=out, width=100), [one])
    return out.getvalue()


def test_what_guessing_reaches_is_marked() -> None:
    text = shown("bucket_sort", 915)
    assert "91.5 % solved \u2020" in text
    assert "guessing: 90.1 % (\u2020: that alone passes)" in text
    assert "not solved" in shown("bucket_sort", 895)
    text = shown("parity_check", 915)
    assert "91.5 % solved" in text
    assert "\u2020" not in text
