"""The curves of Figure 4: models, and ways to run them; and the lengths that are usual.

Every model is run as a user would run it fastest, and operation by operation, as the paper did.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from prlstm import tasks
from prlstm.models.attention import Attention
from prlstm.models.model import Model
from prlstm.models.pr import PRNetwork
from prlstm.models.recurrent import RecurrentNetwork

Program = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Curve:
    """A model, and a way to run it: `program` makes of the model what answers words (B, L).

    On a CUDA device it computes in `precision`, elsewhere in float32; with `capture` it is
    replayed there as a CUDA graph.
    """

    name: str
    label: str
    model: str
    program: Callable[[Model], Program]
    precision: str = "bfloat16"
    capture: bool = False
    cuda_only: bool = False


def as_it_is(model: Model) -> Program:
    """What a user calls."""
    return model


def without_tables(model: Model) -> Program:
    """The last state over vectors: nothing is looked up."""
    network = _pr_network(model)

    def answer(words: Tensor) -> Tensor:
        x = tasks.tape(model.task, words).one_hot(model.dtype)
        h, _ = network.layer(x, output="last")
        logits: Tensor = network.readout(h[:, None])
        return logits

    return answer


def every_prefix(model: Model) -> Program:
    """Plain PyTorch over vectors: the states after all cells, and logits of all of them."""
    network = _pr_network(model)
    network.layer.backend = "eager"

    def answer(words: Tensor) -> Tensor:
        made = tasks.tape(model.task, words)
        states, _ = network.layer(made.one_hot(model.dtype))
        return made.read(network.readout(states))

    return answer


def op_by_op(model: Model) -> Program:
    """No fused form: a step after the other, attention written to memory."""
    for module in model.modules():
        if isinstance(module, (Attention, RecurrentNetwork)):
            module.fused = False
    return model


def _pr_network(model: Model) -> PRNetwork:
    assert isinstance(model.network, PRNetwork)
    return model.network


# fmt: off
CURVES = {
    curve.name: curve
    for curve in (
        Curve("pr_lstm", "PR-LSTM", "pr_lstm", as_it_is, capture=True),
        Curve("pr_lstm_called", "PR-LSTM, called", "pr_lstm", as_it_is, cuda_only=True),
        Curve("pr_lstm_no_tables", "PR-LSTM, no tables", "pr_lstm", without_tables,
              cuda_only=True),
        Curve("pr_lstm_op_by_op", "PR-LSTM, op by op", "pr_lstm", every_prefix, "float32"),
        Curve("lstm", "LSTM", "lstm", as_it_is, capture=True),
        Curve("lstm_op_by_op", "LSTM, op by op", "lstm", op_by_op, "float32"),
        Curve("transformer_encoder", "Transformer encoder", "transformer_encoder", as_it_is,
              capture=True),
        Curve("transformer_encoder_op_by_op", "Transformer encoder, op by op",
              "transformer_encoder", op_by_op, "float32"),
    )
}
# fmt: on

# short words tell curves apart where a few operations are fast; a CPU is done with them sooner
FIRST = {"cpu": (1, 2, 5, 10, 15, 20, 25, 30, 40, 50, 75), "cuda": (1, 5, 10, 25, 50)}
THEN = (*range(100, 2501, 100), *(1 << k for k in range(12, 21)))


def usual_curves(device: torch.device) -> list[Curve]:
    """All that a device can run."""
    return [one for one in CURVES.values() if device.type == "cuda" or not one.cuda_only]


def usual_lengths(device: torch.device) -> list[int]:
    """Dense where the paper's figure is, and doubled from there on."""
    return [*FIRST.get(device.type, FIRST["cpu"]), *THEN]
