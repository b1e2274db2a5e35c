"""Which models there are, how big they are, and what is refused."""

import json
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import prlstm
from prlstm import models, tasks
from prlstm.models.options import Options

# tapes of 3, 6 and 10 kinds of cells, with 2, 5 and 5 classes
SIZES = {"parity_check": (3, 2), "bucket_sort": (6, 5), "modular_arithmetic": (10, 5)}
COUNTS = {
    ("pr_lstm", 256, 0): (660_226, 663_301, 666_373),
    ("pr_lstm", 256, 1): (923_394, 926_469, 929_541),
    ("pr_lstm", 256, 2): (1_186_562, 1_189_637, 1_192_709),
    ("pr_lstm", 137, 0): (190_295, 191_942, 193_586),
    ("pr_lstm", 137, 1): (265_919, 267_566, 269_210),
    ("pr_lstm", 137, 2): (341_543, 343_190, 344_834),
    ("pr_rnn", 256, 0): (132_866, 134_405, 135_429),
    ("pr_rnn", 256, 1): (198_658, 200_197, 201_221),
    ("pr_rnn", 256, 2): (264_450, 265_989, 267_013),
    ("pr_rnn", 137, 0): (38_499, 39_324, 39_872),
    ("pr_rnn", 137, 1): (57_405, 58_230, 58_778),
    ("pr_rnn", 137, 2): (76_311, 77_136, 77_684),
    ("pr_gru", 256, None): (395_522, 397_061, 398_085),
    ("pr_gru", 137, None): (113_849, 114_674, 115_222),
    ("rnn", 256, None): (67_330, 68_869, 69_893),
    ("lstm", 256, None): (266_754, 270_597, 274_693),
    ("gru", 256, None): (200_194, 203_269, 206_341),
    ("stack_rnn", 256, None): (72_205, 73_744, 74_768),
    ("stack_rnn", 256, "lstm"): (277_773, 281_616, 285_712),
    ("tape_rnn", 256, None): (91_791, 93_330, 94_354),
    ("transformer_encoder", None, 5): (248_962, 249_349, 249_605),
    ("transformer_encoder", None, 2): (99_778, 100_165, 100_421),
}


def parameters(model: torch.nn.Module) -> int:
    return sum(weight.numel() for weight in model.parameters())


@pytest.mark.parametrize(("which", "counts"), COUNTS.items(), ids=str)
def test_parameter_counts(which: tuple[str, int, object], counts: tuple[int, ...]) -> None:
    name, hidden_size, more = which
    chosen: dict[str, object] = {} if hidden_size is None else {"hidden_size": hidden_size}
    if name in ("pr_lstm", "pr_rnn"):
        chosen["refine"] = more
    elif more == "lstm":
        chosen["controller"] = more
    elif name == "transformer_encoder":
        chosen["num_layers"] = more
    with torch.device("meta"):
        made = [parameters(models.build(name, task, **chosen)) for task in SIZES]
    assert tuple(made) == counts


def test_sizes_are_those_of_the_table() -> None:
    for name, (cells, classes) in SIZES.items():
        task = tasks.get(name)
        assert (tasks.tape_size(task), task.output_size) == (cells, classes)


def test_weights_are_drawn_as_the_reference_draws_them() -> None:
    model = models.build("lstm", "parity_check", seed=0)
    cell = model.network.cell
    whole = torch.cat([cell.weight_input, cell.weight_state], 1).detach()
    sigma = 1 / whole.shape[1] ** 0.5
    assert float(whole.abs().max()) <= 2 * sigma
    assert float(whole.std()) == pytest.approx(0.8796 * sigma, rel=0.01)
    assert not cell.bias.any()
    encoder = models.build("transformer_encoder", "parity_check", seed=0).network
    embedding = encoder.encoder.embedding.weight.detach()
    assert float(embedding.abs().max()) <= 0.04
    assert float(embedding.std()) == pytest.approx(0.8796 * 0.02, rel=0.1)
    first = encoder.encoder.layers[0]
    assert float(first.attention.query.weight.detach().std()) == pytest.approx(0.8796 / 8, rel=0.05)
    assert not first.widen.bias.any()
    assert first.norms[0].weight.eq(1).all()
    gru = models.build("gru", "parity_check", seed=0).network.cell.block
    assert float(gru.weight_right.detach().std()) == pytest.approx(1 / 16, rel=0.01)


@pytest.mark.parametrize("name", ["rnn", "stack_rnn", "tape_rnn", "lstm", "transformer_encoder"])
def test_every_weight_is_drawn_within_its_bounds(name: str) -> None:
    more = {"positions": "relative"} if name == "transformer_encoder" else {}
    model = models.build(name, "bucket_sort", seed=0, **more)
    for key, weight in model.named_parameters():
        drawn, last = weight.detach(), key.rsplit(".", 1)[-1]
        if last in ("content_bias", "relative_bias"):
            assert float(drawn.std()) == pytest.approx(0.02, rel=0.2), key
        elif "norms" in key:
            assert drawn.eq(1 if last == "weight" else 0).all(), key
        elif last.startswith("bias"):
            assert not drawn.any(), key
        else:
            fan_in = drawn.shape[1]
            if name == "lstm" and "cell" in key:
                fan_in = 6 + 256
            sigma = 0.02 if "embedding" in key else fan_in**-0.5
            assert float(drawn.abs().max()) <= 2 * sigma, key
            if drawn.numel() >= 1000:
                assert float(drawn.std()) == pytest.approx(0.8796 * sigma, rel=0.06), key


def test_names_and_options() -> None:
    assert models.names() == [
        "pr_lstm", "pr_rnn", "pr_gru", "rnn", "lstm", "gru", "stack_rnn", "tape_rnn",
        "transformer_encoder", "transformer",
    ]  # fmt: skip
    model = models.build("pr_lstm", tasks.get("parity_check"), hidden_size=5, refine=0)
    assert isinstance(model.options, Options)
    with pytest.raises(AttributeError):
        model.options.refine = 3  # type: ignore[attr-defined]
    assert "pr_lstm, parity_check" in repr(model)


@pytest.mark.parametrize(
    ("name", "chosen", "message"),
    [
        ("pr_lstmm", {}, "name='pr_lstmm': no such model, did you mean 'pr_lstm'?"),
        (
            "lstm",
            {"hidden": 3},
            "hidden=3: lstm has no such hyper-parameter, did you mean 'hidden_",
        ),
        ("lstm", {"refine": 1}, "refine=1: lstm has no such hyper-parameter"),
        ("transformer", {"num_layers": 0}, "num_layers=0: expected an integer >= 1"),
        ("pr_lstm", {"hidden_size": 0}, "hidden_size=0: expected an integer >= 1"),
        ("pr_lstm", {"hidden_size": 2.0}, "hidden_size=2.0: expected an integer >= 1"),
        ("pr_lstm", {"hidden_size": True}, "hidden_size=True: expected an integer >= 1"),
        ("pr_lstm", {"refine": -1}, "refine=-1: expected an integer >= 0"),
        ("pr_lstm", {"computation": -1}, "computation=-1: expected an integer >= 0"),
        ("pr_lstm", {"autoregressive": 1}, "autoregressive=1: expected True or False"),
        ("stack_rnn", {"stack_size": 0}, "stack_size=0: expected an integer >= 1"),
        ("stack_rnn", {"controller": "gru"}, "controller='gru': expected one of 'rnn', 'lstm'"),
        ("tape_rnn", {"mlp_sizes": (3, 0)}, "mlp_sizes=(3, 0): expected a tuple of integers >= 1"),
        ("tape_rnn", {"mlp_sizes": 3}, "mlp_sizes=3: expected a tuple of integers >= 1"),
        ("transformer", {"dropout": 1.0}, "dropout=1.0: expected a number with 0 <= dropout < 1"),
        ("transformer", {"dropout": "a"}, "dropout='a': expected a number with 0 <= dropout < 1"),
        (
            "transformer",
            {"num_heads": 7},
            "num_heads=7: expected a divisor of embedding_size=64",
        ),
        (
            "transformer",
            {"embedding_size": 7, "num_heads": 7},
            "embedding_size=7: expected an even number",
        ),
        (
            "transformer",
            {"embedding_size": 24, "num_heads": 8, "positions": "rotary"},
            "num_heads=8: rotary positions turn pairs of features",
        ),
        ("transformer", {"positions": "x"}, "positions='x': expected one of 'none', 'sin_cos'"),
        ("transformer", {"causal": True}, "causal=True: transformer has no such hyper-parameter"),
        ("pr_lstm", {"seed": -1}, "seed=-1: expected an integer >= 0"),
        ("pr_lstm", {"seed": 1.5}, "seed=1.5: expected an integer >= 0"),
    ],
)
def test_what_is_refused(name: str, chosen: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        models.build(name, "reverse_string", **chosen)


def test_an_encoder_that_would_see_the_answers_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="every cell sees the answers"):
        models.build("transformer_encoder", "reverse_string", autoregressive=True)


def test_one_answer_cannot_be_fed_back() -> None:
    with pytest.raises(ValueError, match="autoregressive=True: parity_check has one answer"):
        models.build("lstm", "parity_check", autoregressive=True)
    with pytest.raises(ValueError, match="name='parity': no such task"):
        models.build("lstm", "parity")


def test_wrong_input() -> None:
    model = models.build("rnn", "reverse_string", hidden_size=4)
    words = torch.randint(2, (2, 5))
    with pytest.raises(ValueError, match=re.escape("lengths[1]=6: expected 1 <= length <= 5")):
        model(words, [5, 6])
    with pytest.raises(ValueError, match=re.escape("tokens of shape (5,): expected (B, L)")):
        model(words[0])
    with pytest.raises(TypeError, match="expected integers"):
        model(words.float())
    stacked = models.Stacked([model, model])
    with pytest.raises(ValueError, match=re.escape("tokens of shape (2, 5): expected (S, B, L)")):
        stacked(words)
    for name, given in (("lengths", {"lengths": [5, 5]}), ("target", {"target": words})):
        with pytest.raises(ValueError, match=rf"{name} of shape \(2,.*\): expected \(S, B.*B=2"):
            stacked(words.expand(2, 2, 5), **given)
    with pytest.raises(ValueError, match=re.escape("tokens[1, 2]=2: expected 0 <= id < 2")):
        model(torch.tensor([[0, 1, 1], [0, 1, 2]]))
    for wrong in ([], 3, [model.network], [stacked]):
        with pytest.raises(TypeError, match="expected one Model or more"):
            models.Stacked(wrong)  # type: ignore[arg-type]
    assert len(models.Stacked(model for _ in range(2))) == 2
    with pytest.raises(TypeError, match="task=3: expected a task or the name of one"):
        models.build("rnn", 3)  # type: ignore[arg-type]
    other = models.build("rnn", "reverse_string", hidden_size=5)
    with pytest.raises(
        ValueError, match=r"models\[1\] is rnn .*hidden_size=5.*: expected rnn .*hidden_size=4"
    ):
        models.Stacked([model, other])


@pytest.mark.parametrize("name", ["transformer", "rnn"])
def test_wrong_targets(name: str) -> None:
    more = {} if name == "transformer" else {"autoregressive": True}
    model, words = models.build(name, "reverse_string", **more), torch.randint(2, (2, 5))
    with pytest.raises(ValueError, match=re.escape("target of shape (2, 4): expected (2, 5)")):
        model(words, target=words[:, 1:])
    with pytest.raises(TypeError, match="expected a tensor of int64"):
        model(words, target=words.float())
    with pytest.raises(ValueError, match=re.escape("target[0, 0]=7: expected 0 <= id < 2")):
        model(words, target=torch.full_like(words, 7))


def test_lists_are_tuples() -> None:
    model = models.build("tape_rnn", "parity_check", mlp_sizes=[3, 4])
    assert model.options == models.build("tape_rnn", "parity_check", mlp_sizes=(3, 4)).options


class TestFolder:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        models.save(models.build("pr_lstm", "parity_check", hidden_size=4), tmp_path)
        return tmp_path

    def refused(self, folder: Path, message: str) -> None:
        with pytest.raises(ValueError, match=re.escape(message)):
            prlstm.load(folder)

    def test_files_that_are_not_there(self, folder: Path) -> None:
        with pytest.raises(
            FileNotFoundError, match=r"nowhere.*expected a folder, or one of .*parity"
        ):
            prlstm.load(folder / "nowhere")
        (folder / "empty").mkdir()
        with pytest.raises(FileNotFoundError, match=r"empty.*expected a file config.json in it"):
            prlstm.load(folder / "empty")
        (folder / "model.safetensors").unlink()
        with pytest.raises(FileNotFoundError, match=r"expected a file model.safetensors in it"):
            prlstm.load(folder)

    def change(self, folder: Path, **parts: object) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | parts))

    def test_configuration_and_weights_that_disagree(self, folder: Path) -> None:
        self.change(folder, hyper_parameters={"hidden_size": 5})
        self.refused(
            folder,
            "layers.0.leaf.weight has shape (12, 3), but config.json makes it (15, 3)",
        )
        self.change(folder, hyper_parameters={"hidden_size": 4, "refine": 2})
        self.refused(folder, "refine.1.weight is missing, config.json makes it (16, 4)")

    def test_one_weight_too_many(self, folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        save_file(weights | {"more": torch.zeros(3)}, folder / "model.safetensors")
        self.refused(folder, "more of shape (3,) is not expected, config.json makes no such tensor")
        key = next(iter(weights))
        save_file(weights | {key: weights[key].double()}, folder / "model.safetensors")
        self.refused(folder, "has type torch.float32, expected one floating-point type for all")

    def test_what_is_no_model(self, folder: Path) -> None:
        model = prlstm.load(folder)
        for wrong in (models.Stacked([model]), model.network):
            with pytest.raises(TypeError, match="expected a Model"):
                models.save(wrong, folder)  # type: ignore[arg-type]
        with pytest.raises(NotADirectoryError, match="expected a folder, this is a file"):
            models.save(model, folder / "config.json")

    def test_damage(self, folder: Path) -> None:
        whole = (folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(whole[:-9])
        self.refused(folder, "model.safetensors: not a whole file of weights")
        (folder / "config.json").write_text("{")
        self.refused(folder, "config.json: not JSON")
        (folder / "config.json").write_text("[]")
        self.refused(folder, "config.json: expected an object")

    def test_unknown_names(self, folder: Path) -> None:
        self.change(folder, model="pr_lstm2")
        self.refused(folder, "config.json: name='pr_lstm2': no such model, did you mean 'pr_lstm'?")
        self.change(folder, model="pr_lstm", task="parity")
        self.refused(folder, "no such task, did you mean 'parity_check'?")
        self.change(folder, task="parity_check", hyper_parameters={"hiden_size": 4})
        self.refused(folder, "hiden_size=4: pr_lstm has no such hyper-parameter")

    def test_what_a_file_says_reaches_no_other_argument(self, folder: Path) -> None:
        for name in ("device", "seed", "dtype", "name"):
            self.change(folder, hyper_parameters={"hidden_size": 4, name: "meta"})
            self.refused(folder, f"{name}='meta': pr_lstm has no such hyper-parameter")

    def test_nothing_random_is_used_up(self, folder: Path) -> None:
        state = torch.get_rng_state()
        prlstm.load(folder)
        assert torch.get_rng_state().equal(state)

    def test_the_type_of_the_weights_is_kept(self, tmp_path: Path) -> None:
        model = models.build("lstm", "parity_check", hidden_size=4, dtype=torch.bfloat16)
        models.save(model, tmp_path)
        assert prlstm.load(tmp_path).dtype == torch.bfloat16
