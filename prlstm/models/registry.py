"""All models by name, in the order of the paper's tables."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from prlstm import tasks
from prlstm.models.memory import StackNetwork, StackOptions, TapeNetwork, TapeRNNOptions
from prlstm.models.model import Model
from prlstm.models.options import Options, TapeOptions
from prlstm.models.pr import PRGRUOptions, PRNetwork, PROptions
from prlstm.models.recurrent import RecurrentNetwork, RecurrentOptions
from prlstm.models.steps import GRUStep, LSTMStep, ReluStep
from prlstm.models.transformer import (
    EncoderDecoderNetwork,
    EncoderNetwork,
    EncoderOptions,
    TransformerOptions,
)
from prlstm.tasks import Task
from prlstm.tasks.check import read_name


@dataclass(frozen=True)
class Kind:
    """A kind of model: what it is, what can be chosen, and how it is made of sizes and choices.

    `depth` and `work` say how many steps wait for each other on a tape of T cells with O answers,
    and how the number of steps (merges, slots of memory, pairs of cells) grows.
    """

    about: str
    options: type[Options]
    network: Callable[[int, int, Any], nn.Module]
    depth: str
    work: str


MODELS: dict[str, Kind] = {
    "pr_lstm": Kind(
        "Parallel Recursive LSTM",
        PROptions,
        lambda d, c, o: PRNetwork(d, c, o.hidden_size, "lstm", o.refine),
        depth="2 log T",
        work="2T",
    ),
    "pr_rnn": Kind(
        "the same tree of ReLU blocks",
        PROptions,
        lambda d, c, o: PRNetwork(d, c, o.hidden_size, "relu", o.refine),
        depth="2 log T",
        work="2T",
    ),
    "pr_gru": Kind(
        "the same tree of GRU blocks",
        PRGRUOptions,
        lambda d, c, o: PRNetwork(d, c, o.hidden_size, "gru", 0),
        depth="2 log T",
        work="2T",
    ),
    "rnn": Kind(
        "recurrent network with ReLU",
        RecurrentOptions,
        lambda d, c, o: RecurrentNetwork(ReluStep(d, o.hidden_size), c),
        depth="T",
        work="T",
    ),
    "lstm": Kind(
        "Long Short-Term Memory",
        RecurrentOptions,
        lambda d, c, o: RecurrentNetwork(LSTMStep(d, o.hidden_size), c),
        depth="T",
        work="T",
    ),
    "gru": Kind(
        "Gated Recurrent Unit",
        RecurrentOptions,
        lambda d, c, o: RecurrentNetwork(GRUStep(d, o.hidden_size), c),
        depth="T",
        work="T",
    ),
    "stack_rnn": Kind(
        "RNN (or LSTM) with a stack",
        StackOptions,
        lambda d, c, o: StackNetwork(
            d, c, o.hidden_size, o.controller, o.stack_cell_size, o.stack_size
        ),
        depth="T",
        work="T^2",
    ),
    "tape_rnn": Kind(
        "RNN with a ring of memory",
        TapeRNNOptions,
        lambda d, c, o: TapeNetwork(
            d, c, o.hidden_size, o.memory_cell_size, o.memory_size, o.mlp_sizes
        ),
        depth="T",
        work="T^2",
    ),
    "transformer_encoder": Kind(
        "Transformer encoder",
        EncoderOptions,
        EncoderNetwork,
        depth="layers",
        work="T^2",
    ),
    "transformer": Kind(
        "Transformer, encoder and decoder",
        TransformerOptions,
        EncoderDecoderNetwork,
        depth="O layers",
        work="T^2",
    ),
}


def names() -> list[str]:
    """The names of all models."""
    return list(MODELS)


def kind(name: str) -> Kind:
    """The kind of model of a name."""
    return MODELS[read_name(name, MODELS, "model")]


def build(
    name: str,
    task: Task | str,
    *,
    seed: int | None = None,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
    **hyper_parameters: Any,
) -> Model:
    """A model for a task, with fresh weights.

    Weights are drawn on the CPU, then moved: with a `seed` they are the same everywhere, and
    PyTorch's own random numbers are left alone. The model is in training mode.
    """
    known = tasks.get(task) if isinstance(task, str) else task
    if not isinstance(known, Task):
        raise TypeError(f"task={task!r}: expected a task or the name of one")
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or seed < 0):
        raise ValueError(f"seed={seed!r}: expected an integer >= 0")
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise ValueError(f"dtype={dtype!r}: expected a floating-point type of torch")
    options = kind(name).options.read(name, hyper_parameters)
    return assembled(name, known, options, seed).to(device=device, dtype=dtype)


def assembled(name: str, task: Task, options: Options, seed: int | None) -> Model:
    """The model of some options, with fresh weights."""
    input_size = task.input_size
    if isinstance(options, TapeOptions):
        if options.autoregressive and task.single_output:
            raise ValueError(
                f"autoregressive=True: {task.name} has one answer, none before it to feed back"
            )
        input_size = tasks.tape_size(
            task, options.computation, autoregressive=options.autoregressive
        )
    with torch.random.fork_rng(devices=[], enabled=seed is not None):
        if seed is not None:
            # of the CPU alone: torch.manual_seed would seed every GPU as well; of any size
            torch.default_generator.manual_seed(seed % (1 << 63))
        network = kind(name).network(input_size, task.output_size, options)
    return Model(name, task, options, network)
