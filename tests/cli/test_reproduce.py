"""`prlstm reproduce` and `prlstm sweep` as a user types them."""

import csv
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from rich.console import Console

from prlstm.cli.reproduce.options import say_written
from prlstm.files import append_rows
from prlstm.report.rows import CURVES, FIGURE3, SCORES, read_results
from prlstm.training.runs import RunFolder, locked
from tests.cli.command import TINY, in_a_line, prlstm

SMALL = [*TINY, "--tasks", "parity_check", "--models", "pr_lstm", "--seeds", "2"]


def places(tmp_path: Path) -> list[str]:
    return ["--out", str(tmp_path / "results"), "--runs", str(tmp_path / "runs")]


def test_table2_small(tmp_path: Path) -> None:
    command = ["reproduce", "table2", *SMALL, "--steps", "20", *places(tmp_path)]
    text = prlstm(*command)
    assert "1 cell, 0 of them answered" in in_a_line(text)
    assert "PR-LSTM on parity_check: done; 1 of 1 cell done" in text
    line = re.search(r"parity_check +PR-LSTM +100.0 +(\d+\.\d)", text)
    assert line is not None
    stem = tmp_path / "results" / "table2-hidden_size-4-batch_size-8"
    for ending in (".csv", ".tex", ".svg", ".png"):
        assert stem.with_name(stem.name + ending).stat().st_size > 100
        assert f"{stem.name}{ending}" in text
    (row,) = csv.DictReader(stem.with_name(stem.name + ".csv").read_text().splitlines())
    assert float(row["max"]) == pytest.approx(float(line[1]) / 100, abs=1e-3)
    assert (row["seeds"], row["steps_max"]) == ("2", "20")
    rows = (tmp_path / "results" / SCORES).read_bytes()
    # once more: all is answered; and more seeds are added
    assert "1 of them answered" in in_a_line(prlstm(*command))
    assert (tmp_path / "results" / SCORES).read_bytes() == rows
    prlstm(*command, "--seeds", "2,")
    new = (tmp_path / "results" / SCORES).read_bytes()
    assert new.startswith(rows)
    assert {row["seed"] for row in read_results(tmp_path / "results" / SCORES)} == {0, 1, 2}


def test_files_that_are_not_there_are_not_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / "there"
    there.touch()
    say_written(Console(width=200), [there, tmp_path / "not"])
    assert capsys.readouterr().out == f"\nWritten:\n  {there}\n"
    say_written(Console(width=200), [tmp_path / "not"])
    assert capsys.readouterr().out == ""


def test_a_trial_of_another_size_has_no_column_of_one_size(tmp_path: Path) -> None:
    command = ["reproduce", "table3", "--dry-run", "--tasks", "parity_check", *places(tmp_path)]
    assert "PR-LSTM 137 on parity_check" in prlstm(*command)
    assert "7 units to make" in prlstm(*command)
    text = prlstm(*command, "--hidden-size", "4")
    assert "6 units to make" in text
    assert "137" not in text


def test_figure3_small(tmp_path: Path) -> None:
    some = [
        "--hidden-size",
        "4",
        "--batch-size",
        "8",
        "--device",
        "cpu",
        "--models",
        "lstm,pr_lstm",
    ]
    command = ["reproduce", "figure3", *some, "--tasks", "even_pairs,bucket_sort", "--steps", "120"]
    text = prlstm(*command, *places(tmp_path))
    rows = read_results(tmp_path / "results" / FIGURE3)
    # in the order of the paper's columns, and of its tasks
    assert [(r["task"], r["model"], r["step"]) for r in rows] == [
        (task, model, [100, 120])
        for model in ("pr_lstm", "lstm")
        for task in ("even_pairs", "bucket_sort")
    ]
    assert not (tmp_path / "results" / SCORES).exists()
    stem = "figure3-hidden_size-4-batch_size-8"
    for ending in (".csv", ".tex", ".svg", ".png"):
        assert (tmp_path / "results" / (stem + ending)).stat().st_size > 100
        assert stem + ending in text
    before = (tmp_path / "results" / FIGURE3).read_bytes()
    assert "4 of them answered" in in_a_line(prlstm(*command, *places(tmp_path)))
    more = [*command, "--steps", "240", *places(tmp_path)]
    text = in_a_line(prlstm(*more, "--dry-run"))
    assert re.search(r"PR-LSTM on even_pairs 1 120 240 \d+:\d\d ", text)
    assert "4 units to make, 0 answered by rows" in text
    assert "unknown" not in text
    with locked(tmp_path / "runs" / rows[0]["run"]):
        one = ["--models", "pr_lstm", "--tasks", "even_pairs"]
        assert "another process is training" in in_a_line(prlstm(*more, *one, code=1))
    assert (tmp_path / "results" / FIGURE3).read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table9"], "No such command 'table9'"),
        (["table2", "--tasks", "parity"], "did you mean 'parity_check'?"),
        (["table2", "--models", "gru"], "'gru': expected some of rnn"),
        (["table3", "--models", ","], "expected at least one of pr_lstm_137"),
        (["table2", "--budget", "soon"], "for --budget: 'soon': expected a time as in 90s, 20m"),
        (["table2", "--seeds", "x"], "expected"),
        (["table2", "--samples", "3"], "samples=3: expected a multiple of 64"),
        (["table2", "--steps", "0"], "Invalid value for '--steps'"),
        (["table2", "--jobs", "0"], "Invalid value for '--jobs'"),
        (["table2", "--device", "cpu", "--precision", "tf32"], "expected a CUDA device"),
        (["figure3", "--device", "tpu"], "expected auto, cpu, cuda"),
    ],
)
def test_wrong_use(arguments: list[str], message: str, tmp_path: Path) -> None:
    assert message in in_a_line(prlstm("reproduce", *arguments, code=2))


def test_rows_of_another_schema(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    append_rows(tmp_path / "results" / SCORES, [{"schema": 7}])
    command = ["reproduce", "table2", *SMALL, "--steps", "20", *places(tmp_path)]
    assert "schema=7, expected 1" in in_a_line(prlstm(*command, code=1))
    assert not (tmp_path / "runs").exists()


def test_a_sweep(tmp_path: Path) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text(
        'task = ["parity_check", "even_pairs"]\nmodel = "lstm"\nhidden_size = [3, 4]\n'
        'batch_size = 8\nsteps = 20\nlengths = ["5:6", 9]\nsamples = 64\n'
    )
    command = ["sweep", grid, "--device", "cpu", *places(tmp_path)]
    text = prlstm(*command)
    assert "lstm, hidden_size 3 on even_pairs: done" in text
    rows = read_results(tmp_path / "results" / SCORES)
    assert {str(row["lengths"]) for row in rows} == {"[[5, 6], [9, 9]]"}
    lines = list(csv.DictReader((tmp_path / "results" / "sweep.csv").read_text().splitlines()))
    assert len(lines) == 4
    assert {line["setting"] for line in lines} == {
        "hidden_size=3 batch_size=8", "hidden_size=4 batch_size=8",
    }  # fmt: skip
    assert "4 of them answered" in in_a_line(prlstm(*command))
    assert len(read_results(tmp_path / "results" / CURVES)) == 4
    grid.write_text("task =")
    assert "grid.toml: not TOML" in in_a_line(prlstm(*command, code=1))
    assert "No such file" in in_a_line(prlstm("sweep", tmp_path / "none.toml", code=1))


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupt_saves_and_the_same_command_goes_on(tmp_path: Path, jobs: str) -> None:
    some = [*TINY, "--tasks", "parity_check,even_pairs", "--models", "lstm", "--seeds", "1"]
    some += ["--steps", "4000", "--jobs", jobs]
    command = [sys.executable, "-m", "prlstm", "reproduce", "table2", *some, *places(tmp_path)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    began = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert began.stdout is not None
    for line in began.stdout:
        if "training, step" in line:
            break
    began.send_signal(signal.SIGINT)
    assert "the same command goes on" in began.communicate(timeout=60)[0]
    assert began.returncode == 130
    assert not (tmp_path / "results" / SCORES).exists()
    assert list((tmp_path / "runs").glob("*/checkpoint.safetensors"))
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    rows = read_results(tmp_path / "results" / SCORES)
    assert {row["step"] for row in rows if row["weights"] == "last"} == {4000}
    assert {row["task"] for row in rows} == {"parity_check", "even_pairs"}


@pytest.mark.slow
def test_cells_save_when_the_command_is_killed(tmp_path: Path) -> None:
    some = [*TINY, "--tasks", "parity_check,even_pairs", "--models", "lstm", "--seeds", "1"]
    some += ["--steps", "1000000", "--jobs", "2", *places(tmp_path)]
    command = [sys.executable, "-m", "prlstm", "reproduce", "table2", *some]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as began:
        assert began.stdout is not None
        seen: set[str] = set()
        for line in began.stdout:
            if "training, step" in line:
                seen.add(line.split(":")[0])
            if len(seen) == 2:
                break
        began.kill()
    ends = time.monotonic() + 40
    while len(list((tmp_path / "runs").glob("*/checkpoint.safetensors"))) < 2:
        assert time.monotonic() < ends, "a minute is not over, so nothing was saved before"
        time.sleep(0.2)
    for path in (tmp_path / "runs").glob("*-s0"):
        wait_until_free(path)
        assert RunFolder.open(path).step()


def wait_until_free(path: Path) -> None:
    """Until nobody trains a run any more."""
    while True:
        with suppress(BlockingIOError), locked(path):
            return
        time.sleep(0.1)


def test_a_budget_that_holds_no_cell_says_so(tmp_path: Path) -> None:
    some = [*TINY, "--tasks", "parity_check", "--models", "lstm,rnn", "--seeds", "1"]
    # the first cell is begun, as nothing tells how long it takes, and spends all of it
    text = prlstm(
        "reproduce", "table2", *some, "--steps", "5", "--budget", "0.1s", *places(tmp_path)
    )
    assert "Not begun, as the budget would not hold them: 1 of the cells." in in_a_line(text)
    text = prlstm("reproduce", "table2", *some, "--steps", "5", *places(tmp_path))
    assert "Not begun" not in text


@pytest.mark.slow
def test_a_budget_is_spent_and_ends(tmp_path: Path) -> None:
    some = [*TINY, "--tasks", "parity_check,even_pairs", "--models", "lstm,rnn", "--seeds", "1"]
    text = prlstm("reproduce", "table2", *some, "--budget", "30s", *places(tmp_path))
    rows = read_results(tmp_path / "results" / SCORES)
    # all are seen, and then what is furthest from the paper's
    assert {(row["task"], row["model"]) for row in rows} == {
        (task, model) for task in ("parity_check", "even_pairs") for model in ("lstm", "rnn")
    }
    assert min(row["step"] for row in rows) >= 1000
    assert max(row["step"] for row in rows) > 1000
    assert "Written" in text
