"""Runs on disk: what is written, what is read back, and what is refused."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import prlstm
from prlstm.training import Trainer
from prlstm.training.checkpoint import restore, take
from prlstm.training.runs import RunFolder, read_rows
from tests.training.test_trainer import run

CPU = torch.device("cpu")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, run(seed=4), CPU)


def test_a_folder_is_named_by_its_content(folder: RunFolder, tmp_path: Path) -> None:
    assert folder.path == tmp_path / run(seed=4).name
    made = json.loads((folder.path / "config.json").read_text())["made_with"]
    assert {"device", "torch", "commit", "date"} <= set(made)
    assert RunFolder.open(folder.path).config == folder.config
    # once more is the same run
    assert RunFolder.create(tmp_path, run(seed=4), CPU) == folder
    assert RunFolder.create(tmp_path, run(seed=5), CPU).path != folder.path


def test_a_run_is_a_model(folder: RunFolder) -> None:
    trainer = Trainer([folder.config])
    trainer.update(3)
    assert folder.checkpoint() is None
    folder.save(take(trainer)[0])
    loaded = prlstm.load(folder.path)
    words = loaded.task.sample(4, 9).input
    with torch.no_grad():
        assert loaded(words).equal(trainer.model(words))
    again, checkpoint = Trainer([folder.config]), folder.checkpoint()
    assert checkpoint is not None
    restore(again, [checkpoint])
    assert again.step == 3


def test_rows_are_appended_and_forgotten(folder: RunFolder) -> None:
    assert folder.metrics() == []
    folder.append([{"step": 0, "loss": 1.5}, {"step": 10, "loss": 0.5}])
    folder.append([{"step": 20, "loss": 0.25}])
    assert [row["step"] for row in folder.metrics()] == [0, 10, 20]
    folder.forget_after(10)
    assert [row["step"] for row in folder.metrics()] == [0, 10]


def test_a_row_that_was_cut_off_does_not_count(folder: RunFolder) -> None:
    folder.append([{"step": 0}, {"step": 10}])
    path = folder.path / "metrics.jsonl"
    path.write_text(path.read_text()[:-4])
    assert folder.metrics() == [{"step": 0}]
    folder.forget_after(100)
    folder.append([{"step": 10}])
    assert folder.metrics() == [{"step": 0}, {"step": 10}]


@pytest.mark.parametrize("line", ["{", "3", "", "[]"])
def test_a_line_that_is_no_row_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"step": 0}}\n{line}\n{{"step": 1}}\n')
    with pytest.raises(ValueError, match=re.escape(f"{path}, line 2: not a row ({line!r})")):
        read_rows(path)


def test_two_processes_do_not_train_one_run(folder: RunFolder) -> None:
    code = (
        "import sys; from pathlib import Path; from prlstm.training.runs import RunFolder\n"
        "with RunFolder.open(Path(sys.argv[1])).locked(): print('got it')"
    )
    command = [sys.executable, "-c", code, str(folder.path)]
    with folder.locked():
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode != 0
        assert "another process is training this run" in done.stderr
    assert "got it" in subprocess.run(command, capture_output=True, text=True).stdout


class TestRefused:
    def refused(self, path: Path, message: str) -> None:
        with pytest.raises((ValueError, FileNotFoundError), match=re.escape(message)):
            RunFolder.open(path)

    def test_not_a_run(self, tmp_path: Path) -> None:
        self.refused(tmp_path / "x", "expected the folder of a run, with config.json in it")

    @pytest.mark.parametrize("contents", ["{", "[]", "{}", '{"task": "parity_check", "x": 1}'])
    def test_damaged(self, folder: RunFolder, contents: str) -> None:
        (folder.path / "config.json").write_text(contents)
        self.refused(folder.path, "config.json: not the configuration of a run (")

    def test_changed(self, folder: RunFolder) -> None:
        path = folder.path / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"batch_size": 16}))
        self.refused(folder.path, f"expected {folder.path.name}: it was changed, or")
