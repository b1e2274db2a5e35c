"""What is written beside every number."""

import subprocess
from pathlib import Path

import pytest
import torch

from prlstm.environment import commit_of, environment


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name in ("results/rows.jsonl", "benchmarks/results/rows.jsonl", "code.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("first\n")
    someone = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for arguments in (["init", "-q"], ["add", "."], [*someone, "commit", "-qm", "first"]):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    return tmp_path


def test_rows_that_are_added_are_no_change_of_the_code(repository: Path) -> None:
    clean = commit_of(repository)
    assert clean is not None
    assert not clean.endswith("-dirty")
    for name in ("results/rows.jsonl", "benchmarks/results/rows.jsonl", "results/more.jsonl"):
        (repository / name).write_text("second\n")
    assert commit_of(repository) == clean
    (repository / "code.py").write_text("second\n")
    assert commit_of(repository) == f"{clean}-dirty"


def test_without_a_repository_nothing_is_known(tmp_path: Path) -> None:
    assert commit_of(tmp_path) is None


def test_a_commit_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRLSTM_COMMIT", "abc")
    assert environment(torch.device("cpu"))["commit"] == "abc"
