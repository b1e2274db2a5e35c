"""Whatever goes wrong is said in a line, ends with another code than zero, and destroys nothing."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from prlstm.training import Trainer
from prlstm.training.runs import METRICS, SCORES, RunFolder, locked
from tests.cli.command import TINY, in_a_line, prlstm


def train(root: Path, steps: int = 20, code: int = 0) -> str:
    some = (*TINY, "--steps", str(steps), "--validate-every", "10", "--out", root)
    return in_a_line(prlstm("train", "parity_check", *some, code=code))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("trained")
    train(root)
    (path,) = root.iterdir()
    return path


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> RunFolder:
    return RunFolder.open(shutil.copytree(trained, tmp_path / trained.name))


def contents(folder: RunFolder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.path.iterdir() if path.is_file()}


def is_limited() -> None:
    """Files of more than 6 kB cannot be written: as on a full disk, in the midst of a write."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))


def test_a_full_disk(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(folder)
    arguments = ["train", "parity_check", *TINY, "--steps", "40", "--validate-every", "0"]
    command = [sys.executable, "-m", "prlstm", *arguments, "--out", str(folder.path.parent)]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=is_limited)
    assert done.returncode == 1, done.stderr
    assert "Error: " in done.stderr
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    after = contents(folder)
    for name in ("config.json", "checkpoint.safetensors", "model.safetensors", "scores.jsonl"):
        assert after[name] == before[name]
    assert not [name for name in after if name.endswith(".new")]
    # with room again it goes on
    monkeypatch.setattr("prlstm.cli.train._score_all", lambda *_: None)
    train(folder.path.parent, 40)
    assert folder.step() == 40


def test_an_unwritable_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here first")
    text = train(tmp_path / "file" / "runs", code=1)
    assert "Error: " in text
    assert "file/runs" in text
    assert "Not a directory" in text
    if os.getuid():
        (tmp_path / "closed").mkdir(mode=0o500)
        assert "Permission denied" in train(tmp_path / "closed", code=1)


def test_a_half_written_row(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder.path / METRICS
    path.write_bytes(path.read_bytes() + b'{"step": 30, "sec')
    assert "solved" in train(folder.path.parent)
    monkeypatch.setattr("prlstm.cli.train._score_all", lambda *_: None)
    train(folder.path.parent, 30)
    assert [row["step"] for row in folder.rows(METRICS)] == [10, 20, 30]


def test_a_row_that_is_none(folder: RunFolder) -> None:
    path = folder.path / METRICS
    path.write_bytes(b"not a row\n" + path.read_bytes())
    before = contents(folder)
    assert f"{path}, line 1: not a row" in train(folder.path.parent, 30, code=1)
    after = contents(folder)
    after.pop("request.json")
    assert after.items() <= before.items()


@pytest.mark.parametrize("command", ["resume", "plot", "runs"])
@pytest.mark.parametrize("row", [{}, {"loss": "x"}, {"loss": 10**400}, {"step": None}])
def test_a_row_without_its_numbers(folder: RunFolder, row: dict[str, object], command: str) -> None:
    path = folder.path / METRICS
    whole = json.loads(path.read_text().splitlines()[0])
    path.write_text(json.dumps(whole | row if row else {}) + "\n")
    arguments = ("--out", folder.path.parent) if command == "runs" else (folder.path,)
    more = ("--steps", "30") if command == "resume" else ()
    text = in_a_line(prlstm(command, *arguments, *more, code=1))
    assert f"Error: {path}, line 1: " in text
    assert ", expected a number" in text


@pytest.mark.parametrize("kept", [0, 100, -1])
def test_a_truncated_checkpoint(folder: RunFolder, kept: int) -> None:
    path = folder.path / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    before = contents(folder)
    text = train(folder.path.parent, 30, code=1)
    assert "Error: " in text
    assert "checkpoint.safetensors: not a whole checkpoint" in text
    assert contents(folder) == before
    assert "not a whole checkpoint" in in_a_line(prlstm("resume", folder.path, code=1))


def test_a_foreign_checkpoint(folder: RunFolder) -> None:
    save_file({"weights/a": torch.zeros(3)}, folder.path / "checkpoint.safetensors")
    before = contents(folder)
    assert "not a checkpoint of a run, expected format" in train(folder.path.parent, 30, code=1)
    assert contents(folder) == before


def test_a_checkpoint_of_another_run(folder: RunFolder) -> None:
    prlstm("train", "even_pairs", *TINY, "--steps", "5", "--out", folder.path.parent)
    (other,) = folder.path.parent.glob("even_pairs*")
    name = "checkpoint.safetensors"
    (folder.path / name).write_bytes((other / name).read_bytes())
    before = contents(folder)
    # whether it is to go on, or is where it shall be
    for steps in (30, 5):
        text = train(folder.path.parent, steps, code=1)
        assert f"{folder.path / name}: a checkpoint of 'even_pairs-" in text
        assert contents(folder) == before


def test_damaged_weights(folder: RunFolder) -> None:
    path = folder.path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    asked = ("--lengths", "5", "--samples", "64")
    text = in_a_line(prlstm("eval", folder.path, *asked, code=1))
    assert "model.safetensors: not a whole file of weights" in text
    assert "not a whole file" in in_a_line(prlstm("predict", folder.path, stdin="01\n", code=1))


def test_two_processes(folder: RunFolder) -> None:
    before = contents(folder)
    with locked(folder.path):
        text = train(folder.path.parent, 30, code=1)
    assert f"{folder.path}: another process is training this run" in text
    assert contents(folder) == before


def test_a_loss_that_is_no_number(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    update = Trainer.update

    def poisoned(self: Trainer) -> None:
        if self.step == 24:
            with torch.no_grad():
                next(self.model.parameters()).fill_(float("nan"))
        update(self)

    before = contents(folder)
    monkeypatch.setattr(Trainer, "update", poisoned)
    text = train(folder.path.parent, 30, code=1)
    assert "seed 0 stopped: the loss is nan at step 24" in text
    assert f"Error: {folder.path}: the loss is nan at step 24; what was saved before it is" in text
    after = contents(folder)
    after.pop("request.json")
    assert after.items() <= before.items()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_saves_and_says_how_to_go_on(tmp_path: Path, number: signal.Signals) -> None:
    arguments = ["train", "parity_check", *TINY, "--steps", "1000000", "--seeds", "2"]
    command = [sys.executable, "-m", "prlstm", *arguments, "--out", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while process.poll() is None and len(list(tmp_path.glob("*/metrics.jsonl"))) < 2:
            time.sleep(0.01)
        process.send_signal(number)
        out, err = (text.decode() for text in process.communicate(timeout=60))
    assert process.returncode == 130, err
    assert not err
    folders = [RunFolder.open(path) for path in sorted(tmp_path.iterdir())]
    steps = {folder.step() for folder in folders}
    assert len(steps) == 1
    assert f"Interrupted. Saved as of step {steps.pop():,}. To go on:" in out
    assert f"prlstm resume {folders[0].path} {folders[1].path}" in out


def test_nobody_reads_any_more(tmp_path: Path) -> None:
    """As with `| head`: training goes on to its end, silently."""
    arguments = ["train", "parity_check", *TINY, "--steps", "120", "--validate-every", "40"]
    command = [sys.executable, "-m", "prlstm", *arguments, "--out", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        process.wait(60)
    (path,) = tmp_path.iterdir()
    folder = RunFolder.open(path)
    assert folder.step() == 120
    assert folder.rows(SCORES)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_score_that_is_interrupted(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    def stop(*_: object, **__: object) -> None:
        os.kill(os.getpid(), number)
        time.sleep(5)

    monkeypatch.setattr("prlstm.cli.train.score", stop)
    (folder.path / SCORES).unlink()
    text = train(folder.path.parent, code=130)
    assert "Interrupted. Saved as of step 20; the score is not finished. To go on:" in text
    assert not (folder.path / SCORES).exists()


def test_the_file_that_does_not_fit_is_named(folder: RunFolder) -> None:
    size, rows = (folder.path / SCORES).stat().st_size, folder.rows(SCORES)
    code = (
        "import resource, sys; from pathlib import Path\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size + 50}, {size + 50}))\n"
        "from prlstm.training.runs import RunFolder\n"
        "try: RunFolder.open(Path(sys.argv[1])).append('scores.jsonl', {'step': 'x' * 99})\n"
        "except OSError as failed: print(failed.filename, failed.strerror)"
    )
    command = [sys.executable, "-c", code, str(folder.path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == f"{folder.path / SCORES} File too large\n", done.stderr
    # what was written of it does not count, and goes with the next row
    assert folder.rows(SCORES) == rows


class TestUntrusted:
    """Folders of somebody else are safe to open: nothing runs, nothing outside is written."""

    @pytest.mark.parametrize("name", ["config.json", "metrics.jsonl", "scores.jsonl"])
    def test_files_without_an_end(self, folder: RunFolder, name: str) -> None:
        path = folder.path / name
        path.unlink()
        path.symlink_to("/dev/zero")
        prlstm("runs", "--out", folder.path.parent, code=1)
        path.unlink()
        os.mkfifo(path)
        text = in_a_line(prlstm("runs", "--out", folder.path.parent, code=1))
        assert "expected" in text

    def test_a_checkpoint_without_an_end(self, folder: RunFolder) -> None:
        for name in ("checkpoint.safetensors", "model.safetensors"):
            (folder.path / name).unlink()
            os.mkfifo(folder.path / name)
        text = in_a_line(prlstm("resume", folder.path, code=1))
        assert "checkpoint.safetensors: expected a file" in text
        asked = ("--lengths", "5", "--samples", "64")
        assert "model.safetensors" in in_a_line(prlstm("eval", folder.path, *asked, code=1))

    @pytest.mark.parametrize("model", ["pr_lstm", "transformer"])
    def test_counts_without_an_end(self, tmp_path: Path, model: str) -> None:
        name = "refine" if model == "pr_lstm" else "num_layers"
        config = {"model": model, "task": "parity_check", "hyper_parameters": {name: 10**9}}
        (tmp_path / "config.json").write_text(json.dumps(config))
        (tmp_path / "model.safetensors").write_bytes(b"")
        text = in_a_line(prlstm("predict", tmp_path, stdin="01\n", code=1))
        assert f"{name}=1000000000: expected an integer" in text

    def test_names_that_steer_a_terminal(self, folder: RunFolder) -> None:
        path = folder.path / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"\x1b[2J": 1}))
        for command in (("runs", "--out", folder.path.parent), ("resume", folder.path)):
            text = prlstm(*command, code=1)
            assert "\x1b" not in text
            assert "x1b[2J" in text

    def test_a_link_for_events(self, folder: RunFolder, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (folder.path / "tensorboard").symlink_to(tmp_path / "elsewhere")
        text = prlstm("resume", folder.path, "--tensorboard", code=1)
        assert "tensorboard: expected a folder, not a link" in in_a_line(text)
        assert not list((tmp_path / "elsewhere").iterdir())

    def test_sizes_that_fill_the_memory(self, folder: RunFolder) -> None:
        path = folder.path / "config.json"
        path.write_text(path.read_text().replace('"hidden_size": 4', '"hidden_size": 4000000'))
        text = in_a_line(prlstm("predict", folder.path, stdin="01\n", code=1))
        assert "but config.json makes it" in text

    def test_deep_nesting(self, folder: RunFolder) -> None:
        (folder.path / "config.json").write_text("[" * 100_000)
        assert "not JSON" in in_a_line(prlstm("predict", folder.path, stdin="01\n", code=1))
        (folder.path / METRICS).write_text("[" * 100_000 + "\n")
        assert "config.json" in in_a_line(prlstm("runs", "--out", folder.path.parent, code=1))

    def test_signs_that_steer_a_terminal(self, folder: RunFolder) -> None:
        row = folder.rows(SCORES)[0]
        folder.append(SCORES, row | {"weights": "\x1b[2J[red]"})
        text = prlstm("runs", "--out", folder.path.parent)
        assert "\x1b" not in text

    def test_a_pickle_is_not_opened(self, folder: RunFolder, tmp_path: Path) -> None:
        torch.save({"a": torch.zeros(3)}, folder.path / "model.safetensors")
        text = in_a_line(prlstm("predict", folder.path, stdin="01\n", code=1))
        assert "not a whole file of weights" in text
