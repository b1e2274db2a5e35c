"""What can be typed, what presets set, and what is refused before anything begins."""

from pathlib import Path

import pytest

from prlstm.models import MODELS
from prlstm.training import Request, RunConfig
from tests.cli.command import in_a_line, prlstm


def test_presets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they set, what a user's own word changes, and what never reaches another model."""
    from prlstm.cli import train as module

    seen = []

    def see(configs: list[RunConfig], request: Request, *_: object, **__: object) -> None:
        seen.append((configs, request))

    monkeypatch.setattr(module, "_train_and_score", see)
    prlstm("train", "parity_check")
    prlstm("train", "parity_check", "--preset", "quick", "--batch-size", "9")
    prlstm("train", "parity_check", "--preset", "quick", "--model", "transformer_encoder")
    prlstm("train", "parity_check", "--preset", "paper", "--seeds", "3,5:7")
    usual, quick, other, paper = seen
    assert [config.seed for config in usual[0]] == [0]
    assert (usual[1].steps, usual[1].samples, usual[0][0].batch_size) == (100_000, 512, 128)
    assert usual[0][0].hyper_parameters["hidden_size"] == 256
    assert (quick[1].samples, quick[0][0].batch_size) == (64, 9)
    assert quick[0][0].hyper_parameters["hidden_size"] == 64
    assert "hidden_size" not in other[0][0].hyper_parameters
    assert [config.seed for config in paper[0]] == [3, 5, 6, 7]
    assert paper[1].steps == 1_000_000


def test_every_option_of_every_model_is_an_option() -> None:
    text = prlstm("train", "--help")
    for kind in MODELS.values():
        for name in kind.options.__dataclass_fields__:
            assert f"--{name.replace('_', '-')}"[:20] in text


class TestRefused:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["parity"], "no such task, did you mean 'parity_check'"),
            (["parity_check", "--model", "lstmm"], "no such model, did you mean 'lstm'"),
            (["parity_check", "--seeds", "0"], "expected how many seeds, from 1 to 10,000"),
            (["parity_check", "--seeds", "99999999999"], "expected how many seeds"),
            (["parity_check", "--seeds", "²"], "expected numbers from 0"),
            (["parity_check", "--seeds", "a"], "expected numbers from 0"),
            (["parity_check", "--device", "tpu"], "expected auto, cpu, cuda or cuda:N"),
            (["parity_check", "--device", "cuda:99"], "CUDA devices here"),
            (["parity_check", "--precision", "float8"], "float8"),
            (
                ["parity_check", "--model", "lstm", "--refine", "2"],
                "Invalid value for --refine: lstm has no such option; it has: --autoregressive, "
                "--computation, --hidden-size",
            ),
            (
                ["parity_check", "--model", "tape_rnn", "--mlp-sizes", "a,b"],
                "Invalid value for --mlp-sizes: 'a,b': expected sizes as in 64,64",
            ),
        ],
    )
    def test_typed_wrongly(self, arguments: list[str], message: str, tmp_path: Path) -> None:
        text = in_a_line(prlstm("train", *arguments, "--out", tmp_path, code=2))
        assert message in text
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--hidden-size", "0"], "hidden_size=0: expected an integer >= 1"),
            (["--steps", "0"], "steps=0: expected an integer >= 1"),
            (["--samples", "65"], "samples=65: expected a multiple of 64"),
            (["--learning-rate", "-1"], "rate=-1.0: expected a finite number > 0"),
            (["--average", "2"], "average=2.0: expected a number with 0 <= average < 1"),
            (["--longest", "0"], "longest=0: expected an integer >= 1"),
            (["--until-solved", "--validate-every", "0"], "expected validate_every >= 1"),
        ],
    )
    def test_values(self, arguments: list[str], message: str, tmp_path: Path) -> None:
        text = prlstm("train", "parity_check", *arguments, "--out", tmp_path, code=2)
        assert message in in_a_line(text)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--precision", "tf32", "--device", "cpu"], "precision='tf32': expected a CUDA"),
            (["--autoregressive"], "parity_check has one answer, none before it to feed back"),
        ],
    )
    def test_what_does_not_go_together(
        self, arguments: list[str], message: str, tmp_path: Path
    ) -> None:
        text = prlstm("train", "parity_check", *arguments, "--out", tmp_path, code=1)
        assert message in in_a_line(text)
