"""The commands of the documents, typed one after the other as a reader would."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from prlstm.cli import train
from prlstm.experiments.sweep import read_sweep
from prlstm.training import RunConfig
from tests.cli.command import prlstm
from tests.test_documents import DOCUMENTS, ROOT, blocks

# what takes hours, a GPU or a cluster; the same commands are tested elsewhere, at small size
NOT_TYPED = {
    "prlstm train cycle_navigation --seeds 10",
    "prlstm train modular_arithmetic --seeds 10 --device cuda --steps 100000",
    *(f"prlstm reproduce {name}" for name in ("table1", "table2", "table3", "figure3", "figure4")),
    "prlstm reproduce table2 --models pr_lstm --seeds 3 --steps 100000 --jobs 4",
    "prlstm reproduce table2 --models pr_lstm,lstm --budget 20m",
    "prlstm sweep grid.toml --engine ray",
    "prlstm reproduce table2 --engine ray --address head:6379 "
    "--out /shared/results --runs /shared/runs",
}


def _lines() -> Iterator[str]:
    for path in sorted(DOCUMENTS, key=lambda path: path.name != "README.md"):
        for _, script in blocks(path, "sh"):
            for line in script.replace("\\\n", " ").splitlines():
                command = re.sub(r"(^| )#.*", "", line).replace(".venv/bin/", "")
                if re.search(r"(^|\| )prlstm ", command):
                    yield " ".join(command.split())


TYPED = list(dict.fromkeys(_lines()))


def test_what_is_not_typed_stands_somewhere() -> None:
    assert set(TYPED) > NOT_TYPED


@pytest.fixture(scope="module")
def grid() -> str:
    """The file of a sweep that the documents show."""
    ((_, text),) = [found for path in DOCUMENTS for found in blocks(path, "toml")]
    return text


def test_the_file_of_a_sweep_is_one(grid: str, tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(grid)
    sweep = read_sweep(tmp_path / "grid.toml")
    assert len(sweep.cells) == 2 * 2 * 2 * 2
    assert sweep.lengths == (*range(41, 101), 200, *range(300, 501))


def test_the_run_that_is_named_is_the_one_that_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[RunConfig] = []
    monkeypatch.setattr(train, "_train_and_score", lambda configs, *_, **__: made.extend(configs))
    prlstm("train", "parity_check", "--preset", "quick", "--device", "cpu")
    (name,) = [config.name for config in made]
    named = {
        run
        for path in DOCUMENTS
        for run in re.findall(r"[\w]+-\w+-[0-9a-f]{8}-s0", path.read_text())
    }
    assert named == {name}


@pytest.mark.slow
def test_every_command_does_what_is_said(grid: str, tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(grid)
    # a folder of rows, for the page that is made of one
    (tmp_path / "elsewhere").symlink_to(ROOT / "results")
    programs = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}
    for line in TYPED:
        if line in NOT_TYPED:
            continue
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line], cwd=tmp_path, env=environment,
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        assert done.stdout or "predict" in line, line
