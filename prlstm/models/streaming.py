"""Words that are read piece by piece: of any length, and as long as nobody stops."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from prlstm.models.model import Model
from prlstm.models.options import TapeOptions
from prlstm.models.pr import PRNetwork
from prlstm.models.recurrent import RecurrentNetwork
from prlstm.tasks import tape_size

# cells that are looked at together
CHUNK = 1 << 14


class WordStream:
    """One word, fed in any pieces, that can be asked for its answer at any time.

    The PR family and the plain recurrent models keep a state, whose size does not grow (with the
    logarithm of the length for trees). Other models cannot go on from a state: for them the whole
    word is kept, and read anew for every answer.
    """

    def __init__(self, model: Model) -> None:
        self.model, self.count = model, 0
        options, network = model.options, model.network
        self._network: PRNetwork | RecurrentNetwork | None = None
        if isinstance(network, (PRNetwork, RecurrentNetwork)) and isinstance(options, TapeOptions):
            self._computation = options.computation
            self._size = tape_size(model.task, options.computation)
            self._network = None if options.autoregressive else network
        self._state: Any = None
        self._kept: list[Tensor] = []

    @property
    def in_constant_memory(self) -> bool:
        """Whether what is kept does not grow with the word."""
        return self._network is not None

    @torch.inference_mode()
    def feed(self, tokens: Tensor | Sequence[int]) -> None:
        """Go on with the word."""
        ids = torch.as_tensor(tokens, dtype=torch.long)
        if not len(ids):
            return
        self.count += len(ids)
        if self._network is None:
            self._kept.append(ids)
            return
        for piece in torch.split(ids, CHUNK):
            self._state = self._network.read_on(self._cells(piece), self._state)

    @torch.inference_mode()
    def answer(self) -> Iterator[int]:
        """The classes that answer the word so far, one after the other."""
        if not self.count:
            raise ValueError("the word is empty: expected at least one token")
        if self._network is None:
            logits = self.model(torch.cat(self._kept).to(self._device)[None])
            yield from logits[0].argmax(-1).tolist()
            return
        state, empty = self._state, self._size - 1
        for piece in _pieces(self._computation * self.count):
            state = self._network.read_on(self._cells(torch.full((piece,), empty - 1)), state)
        for piece in _pieces(self.model.task.output_length(self.count)):
            cells = self._cells(torch.full((piece,), empty))
            logits, state = self._network.answer_on(cells, state)
            yield from logits[0].argmax(-1).tolist()

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def _cells(self, ids: Tensor) -> Tensor:
        ids = ids.to(self._device)
        if getattr(self._network, "reads_ids", False):
            return ids[None]
        return F.one_hot(ids, self._size).to(self.model.dtype)[None]


def _pieces(count: int) -> Iterator[int]:
    """A number of cells, as so many at a time."""
    for first in range(0, count, CHUNK):
        yield min(CHUNK, count - first)
