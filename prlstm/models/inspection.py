"""A look at what a tree has computed: the state of every node, the answer after every prefix."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from prlstm import tasks
from prlstm.models.model import Model
from prlstm.models.options import TapeOptions
from prlstm.models.pr import PRNetwork
from prlstm.tree import Sweep

# tokens of a word: each of its prefixes is answered, by a tree of its own
MOST = 500
# prefixes that are answered at once
TOGETHER = 64


@dataclass(frozen=True)
class Answer:
    """What a model says if the word ends here: classes, and the probability of each.

    `truth` is what the task says, None where what stands here is no word of the language.
    """

    classes: list[int]
    sure: list[float]
    truth: list[int] | None


@dataclass(frozen=True)
class Inspection:
    """A word as a model of the PR family reads it.

    `cells` are the ids of the tape, and `sweep` holds all nodes of the tree over them. `answers[t]`
    is the one after t + 1 tokens.
    """

    model: Model
    word: list[int]
    cells: list[int]
    sweep: Sweep
    answers: list[Answer]

    def block(self, level: int, place: int) -> tuple[Tensor, ...]:
        """The state of a block of 2^level cells, the `place`th of them: h, and c where it has c."""
        return tuple(t[0, place] for t in self.sweep.blocks[level])

    def prefix(self, cells: int) -> tuple[Tensor, ...]:
        """The state after so many cells."""
        return tuple(t[0, cells - 1] for t in self.sweep.prefixes[0])


@torch.no_grad()
def inspect(model: Model, word: Sequence[int]) -> Inspection:
    """Read a word, given as tokens, and keep everything."""
    network, options = model.network, model.options
    if not (isinstance(network, PRNetwork) and isinstance(options, TapeOptions)):
        raise ValueError(f"model={model.name!r}: has no tree, expected pr_lstm, pr_rnn or pr_gru")
    if options.autoregressive:
        raise ValueError("model: it reads its own answers, expected one with autoregressive=False")
    if not 1 <= len(word) <= MOST:
        said = "the word is empty" if not word else f"the word has {len(word):,} tokens"
        raise ValueError(f"{said}: expected 1 to {MOST} tokens")
    device = next(model.parameters()).device
    tokens = torch.tensor([list(word)], device=device)
    tape = tasks.tape(model.task, tokens, computation=options.computation)
    (sweep,) = network.layer.trace(tape.tokens)
    answers = [
        one for first in range(0, len(word), TOGETHER) for one in _some(model, tokens, first)
    ]
    return Inspection(model, list(word), tape.tokens[0].tolist(), sweep, answers)


def _some(model: Model, tokens: Tensor, first: int) -> list[Answer]:
    """The answers after `first + 1` tokens and some more."""
    lengths = range(first + 1, min(first + TOGETHER, tokens.shape[1]) + 1)
    words = tokens[:, : lengths[-1]].expand(len(lengths), -1)
    probabilities = model(words, lengths=list(lengths)).softmax(-1)
    sure, classes = probabilities.max(-1)
    answers = []
    for row, length in enumerate(lengths):
        count = model.task.output_length(length)
        answers.append(
            Answer(
                classes[row, :count].tolist(),
                sure[row, :count].tolist(),
                _truth(model, tokens[0, :length].tolist(), count),
            )
        )
    return answers


def _truth(model: Model, word: list[int], count: int) -> list[int] | None:
    """Zeros that fill up an answer included."""
    try:
        answer = model.task.label(word)
    except ValueError:
        return None
    return answer + [0] * (count - len(answer))
