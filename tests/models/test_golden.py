"""Equality with the reference's baselines and with its recorded training runs."""

import pytest
import torch
from torch import Tensor, nn

from prlstm import models, tasks
from prlstm.models.reading import Reading
from tests.compare import STORED, assert_rel
from tests.golden import arrays, rows_like_ours
from tests.models.reference import ENCODERS, RECURRENT, encoder, encoder_decoder, our_weights
from tests.models.reference import recurrent as recurrent_network


def whole(length: int, input_length: int | None = None) -> Reading:
    """Every cell is an answer."""
    return Reading(0, length, length if input_length is None else input_length, length)


def check_gradients(network: nn.Module, golden: dict[str, Tensor], prefix: str) -> int:
    """Every gradient that the file has; how many there were."""
    gradients = {name: weight.grad for name, weight in network.named_parameters()}
    checked = 0
    for key in golden:
        if key.startswith(prefix):
            for name, want in our_weights(golden, key.removeprefix(prefix), prefix):
                got = gradients[name]
                assert got is not None, name
                assert_rel(name, got, want, STORED[1])
                checked += 1
    return checked


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", RECURRENT)
class TestRecurrent:
    def states(self, network: nn.Module, x: Tensor, reading: Reading) -> tuple[Tensor, object]:
        if hasattr(network, "memory_size"):
            return network.states(x, reading)  # type: ignore[no-any-return, operator]
        states = network.states(x)  # type: ignore[operator]
        return states if isinstance(states, tuple) else (states, None)

    def test_outputs(self, name: str, fused: bool) -> None:
        network, golden = recurrent_network(name)
        network.fused = fused  # type: ignore[assignment]
        lengths = golden["lengths"].tolist()
        assert len(lengths) == 6
        for length in lengths:
            x = golden[f"xs_{length}"].double()
            n = int(golden.get(f"input_length_{length}", torch.tensor(length)))
            reading = whole(length, n)
            h, memory = self.states(network, x, reading)
            assert_rel(f"h_{length}", h, golden[f"h_{length}"], STORED[0])
            assert_rel("logits", network(x, reading), golden[f"logits_{length}"], STORED[0])
            if name == "lstm":
                state = network.cell.first(x)
                for drive in network.cell.drive(x).unbind(1):
                    state = network.cell.step(drive, state)
                assert_rel(f"c_{length}", state[1], golden[f"c_{length}"], STORED[0])
            for key in (f"stack_{length}", f"memory_{length}"):
                if key in golden:
                    assert isinstance(memory, Tensor)
                    assert_rel(key, memory, golden[key], STORED[0])

    def test_each_row_with_its_own_length(self, name: str, fused: bool) -> None:
        """The code for mixed lengths gives the same."""
        network, golden = recurrent_network(name)
        network.fused = fused  # type: ignore[assignment]
        x = golden["xs_13"].double()
        n = torch.full((3,), int(golden.get("input_length_13", torch.tensor(13))))
        places = torch.arange(13).expand(3, 13)
        thirteen = torch.full((3,), 13)
        reading = Reading(0, 13, n, thirteen, places, thirteen)
        assert_rel("logits", network(x, reading), golden["logits_13"], STORED[0])

    def test_gradients(self, name: str, fused: bool) -> None:
        network, golden = recurrent_network(name)
        network.fused = fused  # type: ignore[assignment]
        if "gradR_13" not in golden:
            assert name == "stack_lstm"
            return
        n = int(golden.get("input_length_13", torch.tensor(13)))
        h, _ = self.states(network, golden["xs_13"].double(), whole(13, n))
        (h * golden["gradR_13"].double()).sum().backward()
        assert check_gradients(network, golden, "grad_13_") >= 3


def set_fused(network: nn.Module, fused: bool) -> None:
    for module in network.modules():
        if hasattr(module, "fused"):
            module.fused = fused  # type: ignore[assignment]


@pytest.mark.parametrize("fused", [True, False])
class TestTransformers:
    @pytest.mark.parametrize("name", ENCODERS)
    def test_encoder(self, name: str, fused: bool) -> None:
        network, golden = encoder(name)
        set_fused(network, fused)
        lengths = golden["lengths"].tolist()
        assert len(lengths) == 5
        for length in lengths:
            x = golden[f"xs_{length}"].double()
            logits = network(x, whole(length))
            assert_rel(f"logits_{length}", logits, golden[f"logits_{length}"], STORED[0])

    @pytest.mark.parametrize("name", ["sin_cos", "relative"])
    def test_gradients(self, name: str, fused: bool) -> None:
        network, golden = encoder(name)
        set_fused(network, fused)
        logits = network(golden["xs_5"].double(), whole(5))
        (logits * golden["gradR_5"].double()).sum().backward()
        assert check_gradients(network, golden, "grad_5_") == len(list(network.parameters()))

    def test_encoder_and_decoder(self, fused: bool) -> None:
        network, golden = encoder_decoder()
        set_fused(network, fused)
        pairs = golden["pairs"].tolist()
        assert len(pairs) == 4
        for inputs, answers in pairs:
            case = f"{inputs}_{answers}"
            x, target = golden[f"xs_{case}"].double(), golden[f"targets_{case}"].argmax(-1)
            reading = Reading(0, answers, inputs, answers)
            forced = network(x, reading, target)
            assert_rel(f"logits_{case}", forced, golden[f"logits_{case}"], STORED[0])
            greedy = network(x, reading)
            assert_rel(f"greedy_{case}", greedy, golden[f"greedy_logits_{case}"], STORED[0])


OURS = {"readout": "network.readout.linear", "embed": "network.layer.layers.0.leaf",
        "comp": "network.layer.layers.0.compose",
        "refine1": "network.layer.layers.0.refine.0"}  # fmt: skip


def recorded_weights(golden: dict[str, Tensor], when: str) -> dict[str, Tensor]:
    """The weights before the first or after the last step, by our names."""
    weights = {}
    for theirs, ours in OURS.items():
        for short, full in (("w", "weight"), ("b", "bias")):
            array = golden[f"{when}_{theirs}_{short}"].double()
            if theirs == "readout":
                weights[f"{ours}.{full}"] = array.T if short == "w" else array
            else:
                hidden_size = int(golden["hidden_size"])
                weights[f"{ours}.{full}"] = rows_like_ours(array, hidden_size, "lstm")
    return weights


@pytest.mark.parametrize(("name", "steps"), [("parity_check", 8), ("stack_manipulation", 6)])
def test_recorded_training(name: str, steps: int) -> None:
    """The same weights and batches give the same losses, gradients and weights in the end."""
    golden, task = arrays(f"prlstm_training_{name}"), tasks.get(name)
    refine, hidden_size = int(golden["num_layers"]) - 1, int(golden["hidden_size"])
    model = models.build(
        "pr_lstm", task, hidden_size=hidden_size, refine=refine, dtype=torch.float64
    )
    model.load_state_dict(recorded_weights(golden, "init"))
    optimizer = torch.optim.Adam(model.parameters(), float(golden["learning_rate"]))
    assert len(golden["losses"]) == steps
    for step in range(steps):
        words = golden[f"step{step}_input"].long()
        target = golden[f"step{step}_target"].long().view(len(words), -1)
        assert target.equal(task.target(words))
        logits = model(words)
        loss = tasks.loss(logits, target)
        accuracy = tasks.accuracy(logits, target, task.mask(target))
        optimizer.zero_grad()
        loss.backward()
        gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
        norm = torch.linalg.vector_norm(torch.stack([g.norm() for g in gradients]))
        for gradient in gradients:
            gradient *= min(1.0, float(golden["max_grad_norm"]) / norm.item())
        optimizer.step()
        for key, got in (("losses", loss), ("accuracies", accuracy), ("grad_norms", norm)):
            assert got.item() == pytest.approx(float(golden[key][step]), rel=1e-6), (key, step)
    for key, want in recorded_weights(golden, "final").items():
        assert_rel(key, model.state_dict()[key], want, 2e-6)
