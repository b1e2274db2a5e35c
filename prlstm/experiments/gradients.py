"""How much of a token is left in the last state: the norm of d h_T / d x_t over the distance.

With v of random signs, the squared gradient of v . h_T with respect to x_t has the squared
Frobenius norm of that Jacobian as its mean: one backward pass tells it for every token at once.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from prlstm import models
from prlstm.environment import environment
from prlstm.files import Row
from prlstm.models.folder import WEIGHTS
from prlstm.models.model import Model
from prlstm.models.options import TapeOptions
from prlstm.models.pr import PRNetwork
from prlstm.models.recurrent import RecurrentNetwork
from prlstm.report.rows import append_results
from prlstm.tasks.tapes import one_hot, tape_size

TASK = "parity_check"
MODELS, SEEDS = ("pr_lstm", "lstm"), (0, 1, 2)
# words for a tree and the same less one token; longer ones need more memory than there is
SHORTEST, LONGEST = 3, 65_536
# random words of each seed
INPUTS = 16


@dataclass(frozen=True)
class Weights:
    """Whose gradients: fresh weights of a seed, or those that lie in a folder."""

    name: str
    seed: int = 0
    hidden_size: int = 0
    folder: Path | None = None

    def load(self) -> Model:
        """The model, in double precision: gradients of distant tokens may be very small."""
        if self.folder is None:
            return models.build(
                self.name, TASK, seed=self.seed, dtype=torch.float64, hidden_size=self.hidden_size
            )
        model = models.load(self.folder).double()
        if not isinstance(model.network, (PRNetwork, RecurrentNetwork)):
            raise ValueError(
                f"run={self.name!r}: a {model.name} has no state to follow back, expected a run "
                "of pr_lstm, pr_rnn, pr_gru, rnn, lstm or gru"
            )
        return model

    def settings(self) -> Row:
        """What tells these weights from others; a run that has learned more is another."""
        if self.folder is None:
            sizes = {"hidden_size": self.hidden_size, "seed": self.seed}
            return {"model": self.name, "run": None, **sizes}
        contents = (self.folder / WEIGHTS["last"]).read_bytes()
        digest = hashlib.blake2b(contents, digest_size=4).hexdigest()
        return {"model": models.load(self.folder).name, "run": self.name, "weights": digest}


def fresh(hidden_size: int) -> list[Weights]:
    """PR-LSTM and LSTM as they are before training."""
    return [Weights(name, seed, hidden_size) for seed in SEEDS for name in MODELS]


@dataclass(frozen=True)
class Gradients:
    """The norms for some weights, in words of `length` tokens and in the same less the last one.

    Where `length` is a power of two, that is the most balanced of trees, and the least.
    """

    weights: Sequence[Weights]
    length: int
    device: torch.device

    def __post_init__(self) -> None:
        if not SHORTEST <= self.length <= LONGEST:
            raise ValueError(
                f"length={self.length}: expected {SHORTEST} <= length <= {LONGEST:,}, "
                "the tokens of a word whose gradients are followed"
            )

    def missing(self, rows: Sequence[Row]) -> list[tuple[Weights, int]]:
        """Whose norms, and in words of which length, are not among the rows yet."""
        wanted = [
            (one, length) for one in self.weights for length in (self.length, self.length - 1)
        ]
        return [(one, length) for one, length in wanted if not _is_known(one, length, rows)]

    def measure(self, missing: Sequence[tuple[Weights, int]], path: Path) -> Iterator[Row]:
        """One after the other; each row is on disk when it is given."""
        made_with = environment(self.device)
        for one, length in missing:
            model = one.load().to(self.device)
            generator = torch.Generator().manual_seed(one.seed)
            words = model.task.sample(INPUTS, self.length, generator=generator).input
            # some tasks have no words of every length
            words = words[:, : words.shape[1] - (self.length - length)].to(self.device)
            norms = gradient_norms(model, words, generator)
            known = {"task": model.task.name, "norms": norms, "made_with": made_with}
            row = _settings(one, length) | known
            append_results(path, [row])
            yield row


def _settings(one: Weights, length: int) -> Row:
    return one.settings() | {"length": length, "inputs": INPUTS}


def _is_known(one: Weights, length: int, rows: Sequence[Row]) -> bool:
    """Numbers in double precision do not depend on the machine, but for their last digits."""
    wanted = _settings(one, length)
    return any(wanted == {name: row.get(name) for name in wanted} for row in rows)


def gradient_norms(model: Model, words: Tensor, generator: torch.Generator) -> list[float]:
    """The norm of d h_T / d x_t for the last token and those before it, x_t being one-hot.

    The root of the mean square, over words (B, T) and over signs that the generator draws.
    """
    network, options = model.network, model.options
    assert isinstance(options, TapeOptions)
    size = tape_size(model.task, options.computation, autoregressive=options.autoregressive)
    x = one_hot(words, size, model.dtype).requires_grad_()
    if isinstance(network, PRNetwork):
        h, _ = network.layer(x, output="last")
    else:
        assert isinstance(network, RecurrentNetwork)
        h = network.states(x)[0][:, -1]
    signs = 2 * torch.randint(2, h.shape, generator=generator) - 1
    (gradient,) = torch.autograd.grad((h * signs.to(h)).sum(), x)
    squares = gradient.square().sum(-1).mean(0)
    norms: list[float] = squares.sqrt().flip(0).tolist()
    return norms
