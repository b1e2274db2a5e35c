"""Scores on disk: counted once, answered from rows, never mixed up."""

import re
from pathlib import Path

import pytest
import torch

import prlstm
from prlstm.evaluation import evaluate
from prlstm.training import Event, Request, RunFolder, Schedule, score, train
from prlstm.training.config import differences
from prlstm.training.events import Scored, Scoring
from prlstm.training.precision import computing
from prlstm.training.results import result, summary
from prlstm.training.runs import SCORES
from prlstm.training.scoring import kinds_of_weights, read_counts
from tests.training.test_trainer import run

LENGTHS = [3, 9, 10]


@pytest.fixture
def folders(tmp_path: Path) -> list[RunFolder]:
    configs = [run(seed=seed, average=0.5) for seed in (1, 2)]
    return train(configs, Request(steps=6, validate_every=3, samples=64), tmp_path)


@pytest.mark.parametrize("weights", ["last", "best", "average"])
def test_rows_hold_what_the_model_answers(folders: list[RunFolder], weights: str) -> None:
    counts = score(folders, weights, LENGTHS, 128)
    for folder, count in zip(folders, counts, strict=True):
        (want,) = evaluate(prlstm.load(folder.path, weights=weights), LENGTHS, 128)
        assert count.correct.equal(want.correct)
        row = folder.rows(SCORES)[-1]
        assert read_counts(row).correct.equal(want.correct)
        assert (row["weights"], row["samples"], row["split"]) == (weights, 128, "test")
        assert row["score"] == want.score


def test_a_score_is_counted_once(folders: list[RunFolder]) -> None:
    seen: list[Event] = []
    first = score(folders[:1], "last", LENGTHS, 64, report=seen.append)[0]
    assert isinstance(seen[-1], Scored)
    assert seen[-2] == Scoring(folders[:1], "last", 1.0)
    seen.clear()
    # one is known, the other is not
    both = score(folders, "last", LENGTHS[::-1], 64, report=seen.append)
    assert {event.folder for event in seen if isinstance(event, Scored)} == {folders[1]}
    assert both[0].correct.equal(first.correct)
    assert [len(folder.rows(SCORES)) for folder in folders] == [1, 1]
    # other lengths, words, weights or steps are another question
    for more in ((LENGTHS[:2], 64), (LENGTHS, 128)):
        score(folders[:1], "last", *more)
    score(folders[:1], "average", LENGTHS, 64)
    train([folders[0].config], Request(steps=8, samples=64), folders[0].path.parent)
    score(folders[:1], "last", LENGTHS, 64)
    rows = folders[0].rows(SCORES)
    assert len(rows) == 5
    assert [row["step"] for row in rows] == [6, 6, 6, 6, 8]


def test_the_result_is_that_of_the_protocol(folders: list[RunFolder]) -> None:
    (folder, other) = folders
    score([folder], "last", LENGTHS, 64)
    assert result(folder).score is None
    few = score([folder], samples=64)[0].score
    assert result(folder).score == few
    row = folder.rows(SCORES)[-1]
    # more words of the same step say more, fewer say less, another split says nothing
    for change in ({"samples": 128}, {"samples": 64}, {"samples": 512, "split": "validation"}):
        right = {"correct": [[64]] * 460} if change.get("samples") != 64 else {}
        folder.append(SCORES, row | change | right)
    assert result(folder).scores["last"].samples == 128
    assert result(folder).score == 1
    assert result(other).score is None
    assert result(folder).step == 6


def test_a_row_is_of_the_weights_that_were_scored(
    folders: list[RunFolder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the run goes on meanwhile, or was killed before its weights were written."""
    folder = folders[0]
    older = (folder.path / "model.safetensors").read_bytes()
    config, request = folder.config, Request(steps=9, validate_every=0, samples=64)

    def going_on(*arguments: object, **more: object) -> object:
        found = evaluate(*arguments, **more)  # type: ignore[arg-type]
        train([config], request, folder.path.parent)
        return found

    with monkeypatch.context() as patch:
        patch.setattr("prlstm.training.scoring.evaluate", going_on)
        score([folder], "last", LENGTHS, 64)
    assert folder.step() == 9
    assert folder.rows(SCORES)[-1]["step"] == 6
    (folder.path / "model.safetensors").write_bytes(older)
    score([folder], "last", LENGTHS, 128)
    assert folder.rows(SCORES)[-1]["step"] == 6
    score([folder], "best", LENGTHS, 64)
    best = folder.weights("best")
    assert best is not None
    assert folder.rows(SCORES)[-1]["step"] == best.step


def test_a_run_is_scored_in_its_precision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def see(precision: str, device: torch.device) -> object:
        seen.append(precision)
        return computing(precision, device)

    (folder,) = train([run(precision="bfloat16")], Request(steps=2, samples=64), tmp_path)
    monkeypatch.setattr("prlstm.training.scoring.computing", see)
    score([folder], "last", LENGTHS, 64)
    assert seen == ["bfloat16"]


def test_which_weights_there_are(tmp_path: Path) -> None:
    (folder,) = train([run()], Request(steps=6, validate_every=0, samples=64), tmp_path)
    assert kinds_of_weights(folder) == ["last"]
    with pytest.raises(FileNotFoundError, match="so there are no best weights to score"):
        score([folder], "best", LENGTHS, 64)
    folder.save_best(folder.checkpoint(), 0.5)  # type: ignore[arg-type]
    # they are the last ones: nothing to score twice
    assert kinds_of_weights(folder) == ["last"]
    train([run()], Request(steps=7, validate_every=0, samples=64), tmp_path)
    assert kinds_of_weights(folder) == ["last", "best"]
    fresh = RunFolder.create(tmp_path, run(seed=9), torch.device("cpu"))
    with pytest.raises(FileNotFoundError, match="so there are no last weights to score"):
        score([fresh], "last", LENGTHS, 64)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"correct": [[1], [2]]}, "counts (2, 1) and (3, 1): expected (3, sub-batches)"),
        ({"correct": "x"}, "a row of scores that is none"),
        ({"lengths": None}, "a row of scores that is none"),
    ],
)
def test_rows_that_are_none(
    folders: list[RunFolder], change: dict[str, object], message: str
) -> None:
    score(folders[:1], "last", LENGTHS, 64)
    row = folders[0].rows(SCORES)[0] | change
    with pytest.raises(ValueError, match=re.escape(message)):
        read_counts(row)


def test_summary_over_seeds() -> None:
    over = summary([0.9, 0.2, 0.95, 0.8999])
    assert (over.seeds, over.most, over.succeeded) == (4, 0.95, 2)
    assert over.median == pytest.approx((0.9 + 0.8999) / 2)


def test_what_tells_settings_apart() -> None:
    """No more than that: a default is not worth a word, nor is what all have."""
    warm = Schedule(warm_up=5)
    configs = [run(seed=1), run(seed=2, clip=0.5), run(model="lstm", schedule=warm)]
    assert differences(configs) == [
        {"model": "pr_lstm"},
        {"model": "pr_lstm", "clip": 0.5},
        {"model": "lstm", "warm_up": 5},
    ]
    assert differences(configs[:1]) == [{}]
