"""`prlstm reproduce shipped` as a user types it."""

import re
from importlib import import_module
from pathlib import Path

import pytest
import torch

import prlstm as package
from prlstm.experiments import shipping
from prlstm.experiments.shipping import RECIPES, Recipe
from prlstm.report.rows import SCORES, read_results
from tests.cli.command import in_a_line, prlstm

# the module, which a function of its name hides
command = import_module("prlstm.cli.reproduce.shipped")
ONE = Recipe("parity_check", hidden_size=4, steps=6, grow_every=2, more={"batch_size": 8})


def test_trained_scored_put_and_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "RECIPES", (ONE,))
    monkeypatch.setattr(shipping, "SAMPLES", 64)
    places = [f"--{name}={tmp_path / name}" for name in ("out", "runs", "models")]
    text = prlstm("reproduce", "shipped", "--device", "cpu", *places)
    rows = [r for r in read_results(tmp_path / "out" / SCORES) if r["weights"] == "last"]
    assert [(row["task"], row["step"]) for row in rows] == [("parity_check", 6)]
    # with its score: the recipe's rate is the usual one, which rows do not tell
    assert re.search(r"^parity_check +PR-LSTM of 4 features +6 +\d", text, re.MULTILINE)
    run = package.load(tmp_path / "runs" / rows[0]["run"])
    put = package.load(tmp_path / "models" / "parity_check")
    for one, other in zip(run.parameters(), put.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    scored = (tmp_path / "out" / SCORES).read_bytes()
    # rows answer, also where the runs are not
    again = ["--device", "cpu", places[0], f"--runs={tmp_path / 'none'}", places[2]]
    told = in_a_line(prlstm("reproduce", "shipped", *again))
    assert "parity_check: scored before; its run is not in" in told
    assert (tmp_path / "out" / SCORES).read_bytes() == scored


def test_unknown_tasks_are_named() -> None:
    text = in_a_line(prlstm("reproduce", "shipped", "--tasks", "reverse_string", code=2))
    assert "expected some of even_pairs, modular_arithmetic" in text


def test_recipes_are_of_what_the_paper_solves() -> None:
    assert [recipe.task for recipe in RECIPES] == [
        "even_pairs", "modular_arithmetic", "parity_check", "cycle_navigation",
        "missing_duplicate_string", "bucket_sort",
    ]  # fmt: skip
