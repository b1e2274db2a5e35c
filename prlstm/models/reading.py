"""Where on the tape a network answers, and the map from states to logits."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from prlstm.cells.initial import reset_linear
from prlstm.kernels.choose import choose
from prlstm.kernels.readout import MOST_CLASSES, relu_linear


@dataclass(frozen=True)
class Reading:
    """The cells start <= cell < stop are read; of them `answers` (B, O), or all.

    `lengths` (B,) counts the cells of every row where they differ. The other two are numbers for
    all rows, or one for each (B,): the tokens of a word, and the answers to it. `noise` (1,) is
    the key of all that is random in the network. `letters`, where it is known, counts the ids that
    words are made of; behind a word stands nothing but the id `letters`.
    """

    start: int
    stop: int
    input_lengths: int | Tensor
    answer_counts: int | Tensor
    answers: Tensor | None = None
    lengths: Tensor | None = None
    noise: Tensor | None = None
    letters: int | None = None

    def take(self, parts: Iterable[tuple[int, Tensor]]) -> Tensor:
        """Of states those that answer: (B, O, H).

        The `parts` (B, n, H) are those of consecutive cells, from `start` on, each with the place
        of its first.
        """
        if self.answers is None:
            states = [part for _, part in parts]
            return states[0] if len(states) == 1 else torch.cat(states, 1)
        found: Tensor | None = None
        for first, part in parts:
            index = (self.answers - first).clamp(0, part.shape[1] - 1)[..., None]
            here = part.gather(1, index.expand(-1, -1, part.shape[-1]))
            # answers in an earlier part are known already
            found = here if found is None else here.where(self.answers[..., None] >= first, found)
        assert found is not None
        return found

    def of_whole(self, states: Tensor) -> Tensor:
        """Of the states (B, T, H) of the whole tape those that answer."""
        return self.take([(self.start, states[:, self.start : self.stop])])


class Linear(nn.Linear):
    """An affine map whose weights are drawn as the reference draws them."""

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        reset_linear(self.weight, self.bias)


class ReluReadout(nn.Module):
    """logits = Linear(relu(h)): of every state only the positive half is seen."""

    def __init__(self, hidden_size: int, output_size: int) -> None:
        super().__init__()
        self.linear = Linear(hidden_size, output_size)

    def forward(self, h: Tensor) -> Tensor:
        """Shapes: `h` (..., H), logits (..., C)."""
        weight, bias = self.linear.weight, self.linear.bias
        products = choose(None, weight)
        if products is not None and weight.shape[-2] <= MOST_CLASSES:
            return relu_linear(h, weight, bias, products)
        logits: Tensor = self.linear(torch.relu(h))
        return logits
