"""A model: words in, logits out. It writes the tape, and reads the answers."""

from collections.abc import Callable
from dataclasses import asdict

import torch
from torch import Tensor, nn

from prlstm import tasks
from prlstm.models.options import Options, TapeOptions
from prlstm.models.reading import Reading
from prlstm.tasks import Tape, Task
from prlstm.tasks.check import Lengths, batch_shape, read_lengths
from prlstm.tasks.tapes import cells_of_equals, one_hot, tape_size


class Model(nn.Module):
    """A network that answers the words of a task.

    `model(tokens, lengths=None, target=None)` gives logits (B, O, classes) for words (B, L).
    `lengths` (B,) are those of the words, if they are mixed. `target` (B, O) is for models that
    read their own earlier answers: with it they are given the true ones (teacher forcing),
    without it they go on from what they answered. Other models do not look at it.
    """

    def __init__(self, name: str, task: Task, options: Options, network: nn.Module) -> None:
        super().__init__()
        self.name, self.task, self.options, self.network = name, task, options, network
        # how many models this is: see Stacked
        self.seeds = 1

    def forward(
        self,
        tokens: Tensor,
        lengths: Lengths | None = None,
        target: Tensor | None = None,
        *,
        noise: Tensor | None = None,
    ) -> Tensor:
        """Shapes: `tokens` (B, L), `lengths` (B,), `target` (B, O), logits (B, O, classes).

        `noise` (1,) is a key from `prlstm.stream`: with it dropout is a function of the key,
        without it PyTorch's own random numbers are used.
        """
        rows, longest = batch_shape(tokens)
        _check_ids("tokens", tokens, self.task.input_size)
        shortest = longest
        if lengths is not None:
            n = read_lengths(lengths, rows, longest)
            # what the host knows of the lengths saves work; a GPU is not waited for
            shortest = int(n.min()) if n.device.type == "cpu" else 0
            lengths = None if shortest == longest else n.to(tokens.device)
        on_tape = self.options if isinstance(self.options, TapeOptions) else None
        if target is not None and (on_tape is None or on_tape.autoregressive):
            self._check_target(target, rows, longest)
        if on_tape is None:
            return self._on_the_word(tokens, lengths, target, noise)

        if lengths is None and not on_tape.computation and not on_tape.autoregressive:
            letters, count = self.task.input_size, self.task.output_length(longest)
            reading = Reading(
                longest, longest + count, longest, count, noise=noise, letters=letters
            )
            return self._through(cells_of_equals(self.task, tokens), tape_size(self.task), reading)

        def logits(earlier: Tensor | None = None) -> Tensor:
            made = tasks.tape(
                self.task, tokens, lengths, computation=on_tape.computation, earlier=earlier
            )
            return self._on_the_tape(made, lengths is not None, shortest, noise)

        if not on_tape.autoregressive:
            return logits()
        return logits(target) if target is not None else self._one_by_one(tokens, logits)

    def clip_gradients(self, most: float = 1.0) -> Tensor:
        """Scale the gradients down to a norm of `most` where it is above, for each seed by itself.

        Gives the norms (S,) from before. They are divided by as they are, with no small number
        added.
        """
        gradients = [weight.grad for weight in self.parameters() if weight.grad is not None]
        by_seed = [gradient.view(self.seeds, -1) for gradient in gradients]
        norm = torch.stack([one.square().sum(1) for one in by_seed]).sum(0).sqrt()
        scale = torch.where(norm > most, most / norm, 1.0)
        for one in by_seed:
            one.mul_(scale[:, None])
        return norm

    @property
    def dtype(self) -> torch.dtype:
        """The type of the weights."""
        return next(self.parameters()).dtype

    def _on_the_tape(self, made: Tape, mixed: bool, shortest: int, noise: Tensor | None) -> Tensor:
        """The network over a tape; the answers of the shortest word begin first."""
        on_tape = self.options
        assert isinstance(on_tape, TapeOptions)
        # behind a word stand empty cells alone, unless something else is written there
        plain = not on_tape.computation and not on_tape.autoregressive
        letters = self.task.input_size if plain else None
        start, answers = shortest * (1 + made.computation), made.answers.shape[1]
        if mixed:
            counts, places = made.answer_counts, made.answers
            width = made.tokens.shape[1]
            reading = Reading(
                start, width, made.input_lengths, counts, places, made.lengths, noise, letters
            )
        else:
            reading = Reading(
                start, start + answers, shortest, answers, noise=noise, letters=letters
            )
        return self._through(made.tokens, made.size, reading)

    def _through(self, cells: Tensor, size: int, reading: Reading) -> Tensor:
        """The network over cells (B, T), ids below `size`, or over the vectors of them."""
        reads_ids = getattr(self.network, "reads_ids", False)
        logits: Tensor = self.network(
            cells if reads_ids else one_hot(cells, size, self.dtype), reading
        )
        return logits

    def _one_by_one(self, tokens: Tensor, logits: Callable[[Tensor], Tensor]) -> Tensor:
        """Every answer is read behind those that the model itself gave; zeros are to come."""
        count = self.task.output_length(tokens.shape[1])
        answers = torch.zeros(len(tokens), count, dtype=torch.long, device=tokens.device)
        said = []
        for place in range(count):
            said.append(logits(answers)[:, place])
            answers[:, place] = said[-1].argmax(-1)
        return torch.stack(said, 1)

    def _on_the_word(
        self,
        tokens: Tensor,
        lengths: Tensor | None,
        target: Tensor | None,
        noise: Tensor | None,
    ) -> Tensor:
        """A network that has no tape: the word alone."""
        longest = tokens.shape[1]
        known = torch.arange(self.task.input_size, device=tokens.device)
        x = (tokens[..., None] == known).to(self.dtype)
        count = self.task.output_length(longest)
        if lengths is None:
            reading = Reading(0, count, longest, count, noise=noise)
        else:
            counts = self.task.output_length(lengths)
            reading = Reading(0, count, lengths, counts, lengths=lengths, noise=noise)
        logits: Tensor = self.network(x, reading, target)
        return logits

    def _check_target(self, target: Tensor, rows: int, longest: int) -> None:
        expected = (rows, self.task.output_length(longest))
        if not isinstance(target, Tensor) or target.dtype != torch.int64:
            raise TypeError(f"target={target!r:.80}: expected a tensor of int64")
        if target.shape != expected:
            raise ValueError(f"target of shape {tuple(target.shape)}: expected {expected}")
        _check_ids("target", target, self.task.output_size)

    def extra_repr(self) -> str:
        """What `repr` says inside the brackets."""
        said = ", ".join(f"{name}={value}" for name, value in asdict(self.options).items())
        return f"{self.name}, {self.task.name}, {said}"


def _check_ids(name: str, ids: Tensor, size: int) -> None:
    """Whether ids are below `size`; on a GPU they are not looked at, which would wait for it."""
    if ids.device.type != "cpu" or torch.compiler.is_compiling():
        return
    wrong = (ids < 0) | (ids >= size)
    if wrong.any():
        row, place = wrong.nonzero()[0].tolist()
        value = int(ids[row, place])
        raise ValueError(f"{name}[{row}, {place}]={value}: expected 0 <= id < {size}")
