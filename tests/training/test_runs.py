"""Runs on disk: what is written, what is read back, and what is refused."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import prlstm
from prlstm.files import read_rows
from prlstm.training import RunConfig, Trainer
from prlstm.training.checkpoint import Checkpoint, restore, take
from prlstm.training.runs import (
    METRICS,
    NEXT,
    SCORES,
    VALIDATION,
    Request,
    RunFolder,
    locked,
    save_together,
    settle,
)
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
    assert RunFolder.create(tmp_path, run(seed=4), CPU).path == folder.path
    assert RunFolder.create(tmp_path, run(seed=5), CPU).path != folder.path


def test_a_run_is_a_model(folder: RunFolder) -> None:
    trainer = Trainer([folder.config])
    trainer.update(3)
    assert folder.checkpoint() is None
    save_together([folder], take(trainer))
    loaded = prlstm.load(folder.path)
    words = loaded.task.sample(4, 9).input
    with torch.no_grad():
        assert loaded(words).equal(trainer.model(words))
    again, checkpoint = Trainer([folder.config]), folder.checkpoint()
    assert checkpoint is not None
    restore(again, [checkpoint])
    assert again.step == 3


def test_rows_are_appended_and_forgotten(folder: RunFolder) -> None:
    assert folder.rows(METRICS) == []
    for step in (0, 10, 20):
        row = {"step": step, "seconds": 1.0, "loss": 1.5, "accuracy": 0.5, "norm": 0.1}
        folder.append(METRICS, row)
        folder.append(VALIDATION, {"step": step, "accuracy": 0.5 + step / 100})
    assert [row["step"] for row in folder.rows(METRICS)] == [0, 10, 20]
    assert folder.validated(20) == 0.7
    folder.forget_after(10)
    assert [row["step"] for row in folder.rows(METRICS)] == [0, 10]
    assert folder.validated(10) == 0.6
    assert folder.validated(20) is None


def test_a_row_that_was_cut_off_does_not_count(folder: RunFolder) -> None:
    first, second = ({"step": step, "samples": 64} for step in (0, 10))
    folder.append(SCORES, first)
    folder.append(SCORES, second)
    path = folder.path / "scores.jsonl"
    path.write_text(path.read_text()[:-4])
    assert folder.rows(SCORES) == [first]
    folder.append(SCORES, second)
    assert folder.rows(SCORES) == [first, second]


def test_runs_of_a_stack_are_saved_all_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A save that is cut off anywhere leaves them at one step, the old one or the new one."""
    configs = [run(seed=seed) for seed in (1, 2, 3)]
    trainer = Trainer(configs)
    written, replaced = Checkpoint.write, Path.replace
    for cut in range(7):
        root = tmp_path / str(cut)
        folders = [RunFolder.create(root, config, CPU) for config in configs]
        trainer.update()
        save_together(folders, take(trainer))
        old = trainer.step
        trainer.update()
        calls = 0

        def counted(cut: int = cut) -> None:
            nonlocal calls
            calls += 1
            if calls > cut:
                raise InterruptedError

        def write(self: Checkpoint, path: Path) -> None:
            counted()
            written(self, path)

        def replace(self: Path, target: Path) -> Path:
            if self.name == NEXT:
                counted()
            return replaced(self, target)

        with monkeypatch.context() as patch:
            patch.setattr(Checkpoint, "write", write)
            patch.setattr(Path, "replace", replace)
            if cut < 6:
                with pytest.raises(InterruptedError):
                    save_together(folders, take(trainer))
            else:
                save_together(folders, take(trainer))
        settle(folders)
        expected = old if cut < 3 else trainer.step
        assert [folder.step() for folder in folders] == [expected] * 3
        assert not list(root.glob(f"*/{NEXT}"))


def test_a_save_of_some_runs_is_not_taken_for_one_of_all(tmp_path: Path) -> None:
    folders = [RunFolder.create(tmp_path, run(seed=seed), CPU) for seed in (1, 2)]
    for folder, steps in zip(folders, (3, 5), strict=True):
        trainer = Trainer([folder.config])
        trainer.update(steps)
        save_together([folder], take(trainer))
        trainer.update()
        if steps == 3:
            take(trainer)[0].write(folder.path / NEXT)
    settle(folders)
    assert [folder.step() for folder in folders] == [3, 5]


@pytest.mark.parametrize("line", ["{", "3", "", "[]"])
def test_a_line_that_is_no_row_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"step": 0}}\n{line}\n{{"step": 1}}\n')
    with pytest.raises(ValueError, match=re.escape(f"{path}, line 2: not a row ({line!r})")):
        read_rows(path)


def test_two_processes_do_not_train_one_run(folder: RunFolder) -> None:
    code = (
        "import sys; from pathlib import Path; from prlstm.training.runs import locked\n"
        "with locked(Path(sys.argv[1])): print('got it')"
    )
    command = [sys.executable, "-c", code, str(folder.path)]
    with locked(folder.path):
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

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"seed": 1.5}, "seed=1.5: expected an integer >= 0"),
            ({"batch_size": True}, "batch_size=True: expected an integer >= 1"),
            ({"precision": "float8"}, "precision='float8': expected one of float32, tf32"),
            ({"average": 1}, "average=1: expected a number with 0 <= average < 1"),
            ({"schedule": {"rate": 0}}, "rate=0: expected a finite number > 0"),
            ({"schedule": 3}, "must be a mapping"),
            ({"task": "../../etc"}, "name='../../etc': no such task"),
        ],
    )
    def test_values(self, folder: RunFolder, change: dict[str, object], message: str) -> None:
        path = folder.path / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
        self.refused(folder.path, message)

    def test_nothing_is_written_through_a_link(self, folder: RunFolder, tmp_path: Path) -> None:
        precious = tmp_path / "precious"
        precious.write_text("mine")
        for name in ("scores.jsonl", ".request.json.new"):
            (folder.path / name).symlink_to(precious)
        with pytest.raises(OSError, match="scores"):
            folder.append(SCORES, {"step": 0})
        with pytest.raises(OSError, match="request"):
            folder.ask(Request(steps=3))
        for target in (precious, tmp_path / "nothing"):
            (folder.path / ".lock").symlink_to(target)
            with pytest.raises(OSError, match="lock"), locked(folder.path):
                pass
            (folder.path / ".lock").unlink()
        assert precious.read_text() == "mine"
        assert not (tmp_path / "nothing").exists()


class TestRequest:
    def test_it_is_kept(self, folder: RunFolder) -> None:
        with pytest.raises(
            FileNotFoundError, match="expected what was asked of the run, it is not there"
        ):
            folder.request()
        request = Request(steps=7, until_solved=True, samples=64)
        folder.ask(request)
        assert folder.request() == request

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"steps": 0}, "steps=0: expected an integer >= 1"),
            ({"steps": "9"}, "steps='9': expected an integer >= 1"),
            ({"samples": 100}, "samples=100: expected a multiple of 64"),
            ({"validate_every": 0, "until_solved": True}, "until_solved=True: expected validate_"),
            ({"checkpoint_seconds": -1}, "checkpoint_seconds=-1: expected a number >= 0"),
        ],
    )
    def test_refused(self, folder: RunFolder, change: dict[str, object], message: str) -> None:
        with pytest.raises(ValueError, match=re.escape(message)):
            Request(**{"steps": 5} | change)  # type: ignore[arg-type]
        (folder.path / "request.json").write_text(json.dumps({"steps": 5} | change))
        with pytest.raises(ValueError, match=re.escape(f"request.json: not a request ({message}")):
            folder.request()


def test_a_setting_of_tomorrow_renames_no_run() -> None:
    """The name is made of what is not as usual, so a default that is added changes none."""
    usual = RunConfig(task="parity_check")
    assert usual.name == RunConfig(task="parity_check", hyper_parameters={"refine": 1}).name
    assert usual.with_seed(1).name == usual.name[:-1] + "1"
    # as they were when the first runs were made
    assert usual.name == "parity_check-pr_lstm-d905e156-s0"
    assert run(seed=4).name == "parity_check-pr_lstm-fd376771-s4"
