"""The point of it all: trained on words of up to 40 tokens, right at 500."""

from pathlib import Path

from prlstm.training.results import result
from tests.cli.command import prlstm
from tests.cli.test_train import runs_in


def test_parity_is_learned(tmp_path: Path) -> None:
    some = ("--preset", "quick", "--hidden-size", "32", "--steps", "700", "--device", "cpu")
    text = prlstm("train", "parity_check", *some, "--until-solved", "--out", tmp_path)
    (folder,) = runs_in(tmp_path)
    score = result(folder).score
    assert score is not None
    assert score >= 0.99, text
    assert "1 of 1 succeeded" in text
