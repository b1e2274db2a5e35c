"""Commands that train, score and list: what they say, what they write, what they refuse."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from prlstm import tasks
from prlstm.cli import app
from prlstm.cli.tables import percent
from prlstm.training import RunFolder, score
from prlstm.training.runs import METRICS, SCORES, VALIDATION
from tests.cli.command import TINY, in_a_line, prlstm


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of two tasks: two seeds of one, and one of the other."""
    root = tmp_path_factory.mktemp("runs")
    some = [*TINY, "--steps", "30", "--validate-every", "20", "--out", str(root)]
    prlstm("train", "parity_check", *some, "--seeds", "2", "--average", "0.9")
    prlstm("train", "even_pairs", *some, "--model", "lstm", "--seeds", "7,")
    return root


def runs_in(root: Path) -> list[RunFolder]:
    return [RunFolder.open(path.parent) for path in sorted(root.glob("*/config.json"))]


def test_what_is_written(root: Path) -> None:
    lstm, first, second = runs_in(root)
    assert [lstm.config.seed, first.config.seed, second.config.seed] == [7, 0, 1]
    assert lstm.config.hyper_parameters["hidden_size"] == 4
    for folder in (lstm, first, second):
        assert folder.step() == 30
        assert [row["step"] for row in folder.rows(METRICS)] == [20, 30]
        assert [row["step"] for row in folder.rows(VALIDATION)] == [20, 30]
        row = folder.rows(SCORES)[0]
        assert row["weights"] == "last"
        assert row["lengths"] == list(range(41, 501))
        assert all(len(counts) == 1 for counts in row["correct"])
        assert all(counts == [64] for counts in row["total"])
        shares = [c[0] / t[0] for c, t in zip(row["correct"], row["total"], strict=True)]
        assert row["score"] == pytest.approx(sum(shares) / 460)
        assert {"device", "torch", "commit"} <= set(row["made_with"])
    kinds = {row["weights"] for row in first.rows(SCORES)}
    assert {"last", "average"} <= kinds <= {"last", "average", "best"}


def test_the_table_at_the_end(root: Path) -> None:
    """The same command once more answers from what is there."""
    some = [*TINY, "--steps", "30", "--validate-every", "20", "--out", str(root)]
    before = {path: path.read_bytes() for path in root.rglob("*.jsonl")}
    text = prlstm("train", "parity_check", *some, "--seeds", "2", "--average", "0.9")
    assert {path: path.read_bytes() for path in root.rglob("*.jsonl")} == before
    lines = text.splitlines()
    assert "pr_lstm on parity_check, seeds 0, 1: 30 steps on cpu" in lines[0]
    (header,) = [n for n, line in enumerate(lines) if line.startswith("seed steps")]
    assert "average" in lines[header]
    assert [line.split()[:2] for line in lines[header + 1 : header + 3]] == [
        ["0", "30"],
        ["1", "30"],
    ]
    assert "not solved" in text
    scores = [folder.rows(SCORES)[0]["score"] for folder in runs_in(root)[1:]]
    assert f"max {percent(max(scores))}" in text
    assert f"median {percent(sum(scores) / 2)}" in text
    assert "64 words of each length 41 to 500" in in_a_line(text)
    assert "0 of 2 succeeded (>= 90 %)" in text
    assert "paper: 100.0 % (the best of 10 seeds)    guessing: 50.0 %" in text
    assert lines[-1].endswith("-s*")


def test_plain_lines_while_training(tmp_path: Path) -> None:
    text = prlstm("train", "parity_check", *TINY, "--steps", "30", "--out", tmp_path)
    assert "step 30 of 30" in text
    assert "step 30: seed 0 validates at" in text
    assert "scoring the last weights: 100 % done" in text


def test_settings_reach_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # a Tape-RNN takes minutes for words of 500 tokens
    monkeypatch.setattr("prlstm.cli.train._score_all", lambda *_: None)
    prlstm(
        "train", "bucket_sort", *TINY, "--steps", "12", "--model", "tape_rnn", "--mlp-sizes", "5,6",
        "--schedule", "cosine", "--warm-up", "3", "--learning-rate", "0.01", "--clip", "0.5",
        "--curriculum", "reverse_exponential", "--longest", "9", "--tau", "0.5",
        "--precision", "float64", "--validate-every", "0", "--out", tmp_path,
    )  # fmt: skip
    (folder,) = runs_in(tmp_path)
    config = folder.config
    assert config.hyper_parameters["mlp_sizes"] == (5, 6)
    assert vars(config.schedule) == {
        "rate": 0.01, "kind": "cosine", "warm_up": 3, "decay_steps": 12,
    }  # fmt: skip
    assert config.clip == 0.5
    assert (config.curriculum.kind, config.curriculum.longest, config.curriculum.tau) == (
        "reverse_exponential", 9, 0.5,
    )  # fmt: skip
    assert config.precision == "float64"


def test_resuming(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prlstm.cli.train._score_all", lambda *_: None)
    some = [*TINY, "--seeds", "2", "--validate-every", "20", "--out", str(tmp_path / "runs")]
    prlstm("train", "parity_check", *some, "--steps", "20")
    folders = runs_in(tmp_path / "runs")
    # by path, by name, and by the beginning of a name
    path, name = str(folders[0].path), folders[1].path.name
    text = prlstm("resume", path, name, "--steps", "40", "--out", tmp_path / "runs")
    assert "seeds 0, 1: 40 steps" in text
    assert [folder.step() for folder in folders] == [40, 40]
    straight = [*some[:-1], str(tmp_path / "straight"), "--steps", "40"]
    prlstm("train", "parity_check", *straight)
    for one, other in zip(folders, runs_in(tmp_path / "straight"), strict=True):
        for file in ("model.safetensors", "checkpoint.safetensors"):
            assert (one.path / file).read_bytes() == (other.path / file).read_bytes()
    # it goes as far as was asked last
    assert "40 steps" in prlstm("resume", path)


def test_resuming_is_where_the_run_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the folder that is named, whatever leads there; each as far as it was asked itself."""
    monkeypatch.setattr("prlstm.cli.train._score_all", lambda *_: None)
    a, b = tmp_path / "a [red]", tmp_path / "b"
    for root, seeds, steps in ((a, "0,", "10"), (b, "1,", "20")):
        some = (*TINY, "--validate-every", "0", "--seeds", seeds, "--steps", steps, "--out", root)
        text = prlstm("train", "parity_check", *some)
    (first,), (second,) = runs_in(a), runs_in(b)
    (tmp_path / "link").symlink_to(second.path)
    text = prlstm("resume", first.path, f"{first.path}/", tmp_path / "link", "--steps", "30")
    assert [folder.step() for folder in (first, second)] == [30, 30]
    monkeypatch.chdir(first.path)
    prlstm("resume", ".", "--steps", "31")
    assert first.step() == 31
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a [red]", "b", "link"]
    assert len(runs_in(a)) == len(runs_in(b)) == 1
    # requests are each run's own, and one that fails does not stop the other
    second.ask(replace(second.request(), steps=40))
    (first.path / "checkpoint.safetensors").write_bytes(b"")
    text = prlstm("resume", first.path, second.path, code=1)
    assert "not a whole checkpoint" in in_a_line(text)
    assert second.step() == 40
    assert first.request().steps == 31
    assert f"'{first.path}" not in text


def test_tensorboard(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    some = [*TINY, "--steps", "30", "--validate-every", "20", "--out", str(tmp_path)]
    prlstm("train", "parity_check", *some, "--tensorboard")
    (folder,) = runs_in(tmp_path)
    events = EventAccumulator(str(folder.path / "tensorboard"))
    events.Reload()
    losses = [(event.step, event.value) for event in events.Scalars("training/loss")]
    assert losses == [(r["step"], pytest.approx(r["loss"])) for r in folder.rows(METRICS)]
    accuracy = events.Scalars("validation/accuracy")
    assert [event.step for event in accuracy] == [20, 30]


def test_tensorboard_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard", None)
    some = [*TINY, "--steps", "3", "--out", str(tmp_path)]
    text = prlstm("train", "parity_check", *some, "--tensorboard", code=1)
    assert "pip install 'prlstm[tensorboard]'" in text


class TestEvaluate:
    def test_other_lengths(self, root: Path) -> None:
        name = runs_in(root)[1].path.name
        asked = ("--lengths", "3:5,90", "--samples", "128", "--out", root)
        text = prlstm("eval", name, *asked)
        assert [line.split()[0] for line in text.splitlines()[1:5]] == ["3", "4", "5", "90"]
        assert "mean over these lengths" in text
        folder = runs_in(root)[1]
        row = folder.rows(SCORES)[-1]
        assert (row["lengths"], row["samples"]) == ([3, 4, 5, 90], 128)
        assert [len(counts) for counts in row["total"]] == [2] * 4
        # what is known is not counted once more
        assert prlstm("eval", name, *asked) == text
        assert folder.rows(SCORES)[-1] == row
        assert len([r for r in folder.rows(SCORES) if r["lengths"] == [3, 4, 5, 90]]) == 1

    def test_the_score(self, root: Path) -> None:
        folder = runs_in(root)[1]
        text = prlstm("eval", folder.path, "--samples", "64", "--weights", "average")
        assert "41 to 63" in text
        (counts,) = score([folder], "average", samples=64)
        assert f"score: {percent(counts.score)}, with the average weights" in text
        assert "paper: 100.0 %    guessing: 50.0 %" in text

    def test_refused(self, root: Path) -> None:
        name = runs_in(root)[1].path.name
        for lengths in ("0:4", "9:3", "x", "1-3", "", "9" * 30, "1:99999999"):
            text = prlstm("eval", name, "--out", root, "--lengths", lengths, code=2)
            assert "--lengths" in text
        text = prlstm("eval", name, "--out", root, "--samples", "100", code=1)
        assert "samples=100: expected a multiple of 64" in text
        lstm = runs_in(root)[0].path
        text = prlstm("eval", lstm, "--weights", "average", "--samples", "64", code=1)
        assert "average.safetensors: not there, so there are no average weights" in in_a_line(text)


class TestList:
    def test_all(self, root: Path) -> None:
        lines = prlstm("runs", "--out", root).splitlines()
        assert [line.split()[0] for line in lines[1:]] == [f.path.name for f in runs_in(root)]
        assert [line.split()[1] for line in lines[1:]] == ["30"] * 3

    def test_some(self, root: Path) -> None:
        assert len(prlstm("runs", "--out", root, "--task", "parity_check").splitlines()) == 3
        assert len(prlstm("runs", "--out", root, "--model", "lstm").splitlines()) == 2
        assert len(prlstm("runs", "--out", root, "--unsolved").splitlines()) == 4
        assert "None of the 3 runs" in prlstm("runs", "--out", root, "--solved")
        assert "did you mean" in in_a_line(prlstm("runs", "--task", "parity", code=2))

    def test_json(self, root: Path) -> None:
        read = json.loads(prlstm("runs", "--out", root, "--json"))
        assert len(read) == 3
        for one, folder in zip(read, runs_in(root), strict=True):
            assert one["name"] == folder.path.name
            assert 0 <= one["score"] <= 1
            assert one["score"] == pytest.approx(folder.rows(SCORES)[0]["score"])
            assert one["floor"] == tasks.get(folder.config.task).floors.best
            assert one["config"]["seed"] == folder.config.seed
        assert read[1]["scores"]["average"]["step"] == 30

    def test_settings_are_compared(self, root: Path) -> None:
        lines = prlstm("runs", "--out", root, "--compare").splitlines()
        assert len(lines) == 3
        assert lines[1].startswith("even_pairs lstm")
        assert "average=0.9" in lines[2]
        assert "0 of 2" in lines[2]

    def test_nothing(self, tmp_path: Path) -> None:
        assert f"No runs in {tmp_path}" in in_a_line(prlstm("runs", "--out", tmp_path))
        nowhere = tmp_path / "x"
        assert f"There is no folder {nowhere}" in in_a_line(prlstm("runs", "--out", nowhere))

    def test_what_is_not_finished(self, root: Path, tmp_path: Path) -> None:
        folder = runs_in(root)[0]
        copy = RunFolder.open(shutil.copytree(folder.path, tmp_path / folder.path.name))
        copy.ask(replace(copy.request(), steps=1000))
        assert "30 of 1,000" in prlstm("runs", "--out", tmp_path)
        (read,) = json.loads(prlstm("runs", "--out", tmp_path, "--json"))
        assert (read["step"], read["steps_asked"], read["done"]) == (30, 1000, False)

    def test_names_stay_in_one_piece(self, root: Path) -> None:
        names = [folder.path.name for folder in runs_in(root)]
        result = CliRunner().invoke(app, ["runs", "--out", str(root)], env={"COLUMNS": "40"})
        assert all(name in result.output for name in names)

    def test_a_damaged_one_does_not_hide_the_others(self, root: Path, tmp_path: Path) -> None:
        for folder in runs_in(root)[:2]:
            (tmp_path / folder.path.name).mkdir()
            for name in ("config.json", "metrics.jsonl", "scores.jsonl"):
                (tmp_path / folder.path.name / name).write_bytes((folder.path / name).read_bytes())
        broken = tmp_path / runs_in(root)[0].path.name / "scores.jsonl"
        broken.write_text('{"lengths": 3}\n[]\n')
        text = prlstm("runs", "--out", tmp_path, code=1)
        assert runs_in(root)[1].path.name in text
        assert f"{broken}, line 2: not a row" in in_a_line(text)

    def test_damaged_ones_alone_are_runs(self, tmp_path: Path) -> None:
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "config.json").write_text("{}")
        text = prlstm("runs", "--out", tmp_path, code=1)
        assert "None of the 1 runs" in text
        assert "makes one in a minute" not in text


@pytest.mark.parametrize("command", ["eval", "resume", "plot", "predict"])
def test_runs_that_are_not_there(command: str, root: Path) -> None:
    text = in_a_line(prlstm(command, "nothing", "--out", root, code=1))
    assert "'nothing': no such folder, and no run in" in text
    name = runs_in(root)[0].path.name
    text = in_a_line(prlstm(command, name.replace("even", "evn"), "--out", root, code=1))
    assert f"did you mean {name}?" in text
    text = in_a_line(prlstm(command, "parity", "--out", root, code=1))
    assert "'parity': 2 runs in" in text
