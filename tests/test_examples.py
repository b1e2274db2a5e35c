"""What the documents show: examples and code blocks run, links lead somewhere."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def code_blocks() -> list[tuple[str, str]]:
    found = []
    for path in DOCUMENTS:
        for n, code in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL)):
            found.append((f"{path.name}-{n}", code))
    return found


BLOCKS = code_blocks()


@pytest.mark.parametrize("code", [code for _, code in BLOCKS], ids=[name for name, _ in BLOCKS])
def test_code_blocks_run(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "block", "exec"), {})


def test_there_are_code_blocks() -> None:
    assert len(BLOCKS) >= 3


@pytest.mark.parametrize("name", ["demo", "own_cell"])
def test_examples_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    text = capsys.readouterr().out
    assert ("The three agree" if name == "demo" else "in two pieces") in text


@pytest.mark.slow
def test_parity_is_learned() -> None:
    assert runpy.run_path(str(ROOT / "examples" / "parity.py"))["main"]() >= 0.99


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    text = path.read_text()
    headings = {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("#"):
            assert target[1:] in headings, target
        elif "://" not in target:
            assert (path.parent / target).exists(), target


def test_the_speed_tables_are_those_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    summary = runpy.run_path(str(ROOT / "benchmarks" / "summary.py"))
    readme = (ROOT / "README.md").read_text()
    assert summary["updated"](readme, summary["read_rows"]()) == readme, "run `make results`"
    assert "NVIDIA H200" in summary["tables"](summary["read_rows"]())


def test_the_benchmark_writes_rows(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    command = [sys.executable, str(ROOT / "benchmarks" / "layer.py"), "--device", "cpu"]
    options = ["--hidden", "4", "--lengths", "8,9", "--long", "1000000", "--out", str(rows)]
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
