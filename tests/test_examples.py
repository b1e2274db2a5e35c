"""What the repository shows: examples and benchmarks run."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from prlstm.tasks import registry

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("streaming", "The three agree"),
        ("own_cell", "in two pieces"),
        ("own_task", "10111 has the remainder 2"),
    ],
)
def test_examples_run(
    name: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "TASKS", dict(registry.TASKS))
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    assert said in capsys.readouterr().out


@pytest.mark.slow
def test_parity_is_learned() -> None:
    assert runpy.run_path(str(ROOT / "examples" / "parity.py"))["main"]() >= 0.99


def run_benchmark(name: str, options: list[str], monkeypatch: pytest.MonkeyPatch) -> object:
    """Run a script of `benchmarks/` in this process; how it ends."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setattr(sys, "argv", [name, *options])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "benchmarks" / name), run_name="__main__")
    return ended.value.code


def test_the_benchmark_of_the_tasks_writes_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = tmp_path / "rows.jsonl"
    options = ["--device", "cpu", "--tasks", "even_pairs", "--lengths", "4", "--batches", "2,3"]
    assert run_benchmark("tasks.py", [*options, "--out", str(rows)], monkeypatch) == 0
    read = [json.loads(line) for line in rows.read_text().splitlines()]
    assert [(row["batch"], row["way"]) for row in read] == [(2, "eager"), (3, "eager")]
    for row in read:
        assert row["samples_per_s"] == pytest.approx(1e3 * row["batch"] / row["ms"], abs=1)
        assert {"device", "torch", "commit"} <= set(row)


@pytest.mark.slow
def test_the_benchmark_of_the_models_writes_rows(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    command = [sys.executable, str(ROOT / "benchmarks" / "models.py"), "--device", "cpu"]
    options = ["--models", "rnn", "--lengths", "4", "--seeds", "1,2", "--batch", "2"]
    done = subprocess.run([*command, *options, "--out", str(rows)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    read = [json.loads(line) for line in rows.read_text().splitlines()]
    measured = [(row["what"], row["seeds"]) for row in read]
    assert measured == [("forward", 1), ("train", 1), ("forward", 2), ("train", 2)]
    assert all(row["ms"] > 0 and {"device", "commit", "peak_bytes"} <= set(row) for row in read)


@pytest.mark.slow
def test_the_benchmark_of_training_writes_rows(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    command = [sys.executable, str(ROOT / "benchmarks" / "training.py"), "--device", "cpu"]
    options = ["--models", "lstm", "--lengths", "3,40", "--seeds", "1", "--scores", ""]
    done = subprocess.run([*command, *options, "--out", str(rows)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    short, long = (json.loads(line) for line in rows.read_text().splitlines())
    assert (short["length"], short["reference_ms"]) == (3, None)
    assert (long["length"], long["reference_ms"]) == (40, 113)
    for row in (short, long):
        assert row["ms_per_step_and_seed"] == pytest.approx(row["ms"], abs=1e-3)
        assert {"device", "torch", "commit", "product_ms"} <= set(row)


@pytest.mark.slow
def test_the_benchmark_of_precisions_writes_rows(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    command = [sys.executable, str(ROOT / "benchmarks" / "precision.py"), "parity_check"]
    command += ["--device", "cpu", "--steps", "2", "--seeds", "1", "--hidden", "8"]
    subprocess.run([*command, "--samples", "64", "--out", str(out)], check=True, cwd=ROOT)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["precision"] for row in rows] == ["float32", "bfloat16"]
    assert all(0 <= row["score"] <= 1 and row["commit"] for row in rows)


@pytest.mark.slow
def test_the_benchmark_of_streams_writes_rows(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    command = [sys.executable, str(ROOT / "benchmarks" / "streams.py"), "--rows", "6"]
    subprocess.run([*command, "--furthest", "9", "--out", str(out)], check=True, cwd=ROOT)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert {("streams", "called"), ("layer.step", "called")} <= {
        (r["what"], r["how"]) for r in rows
    }
    for row in rows:
        assert row["tokens_per_s"] > 0
        assert row["error"] < 1e-2
        assert {"device", "torch", "commit"} <= set(row)


def test_the_benchmark_of_the_kernels_names_its_parts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_benchmark("kernels.py", ["blocks"], monkeypatch) == 2
    assert "expected some of block lookup" in re.sub(r"\W+", " ", capsys.readouterr().err)


@pytest.mark.slow
def test_the_benchmark_writes_rows(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    command = [sys.executable, str(ROOT / "benchmarks" / "layer.py"), "--device", "cpu"]
    options = ["--hidden", "4", "--lengths", "8,9", "--long", "400000", "--out", str(rows)]
    done = subprocess.run([*command, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Milliseconds" in done.stdout
    read = [json.loads(line) for line in rows.read_text().splitlines()]
    measured = [row for row in read if row["what"] != "long stream"]
    assert {row["length"] for row in measured} == {8, 9}
    assert {"lstm", "all", "last", "stream"} <= {row["what"] for row in measured}
    held = [row["held_bytes"] for row in read if row["what"] == "long stream"]
    assert len(held) == 10
    # on Linux, where the memory of a process is known: flat, give or take an allocator's page
    assert None in held or max(held[1:]) - min(held[1:]) < 4 * 2**20
    for row in measured:
        assert row["ms"] > 0
        assert {"device", "torch", "commit", "peak_bytes"} <= set(row)
