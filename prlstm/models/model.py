"""A model: words in, logits out. It writes the tape, and reads the answers."""

from dataclasses import asdict

import torch
from torch import Tensor, nn

from prlstm import tasks
from prlstm.models.options import Options, TapeOptions
from prlstm.models.reading import Reading
from prlstm.tasks import Tape, Task
from prlstm.tasks.check import Lengths, batch_shape, read_lengths
from prlstm.tasks.tapes import UNKNOWN


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
        self, tokens: Tensor, lengths: Lengths | None = None, target: Tensor | None = None
    ) -> Tensor:
        """Shapes: `tokens` (B, L), `lengths` (B,), `target` (B, O), logits (B, O, classes)."""
        rows, longest = batch_shape(tokens)
        _check_ids("tokens", tokens, self.task.input_size)
        if lengths is not None:
            n = read_lengths(lengths, rows, longest)
            # as fast as without lengths, where the host knows that they are equal
            equal = n.device.type == "cpu" and bool((n == longest).all())
            lengths = None if equal else n.to(tokens.device)
        on_tape = self.options if isinstance(self.options, TapeOptions) else None
        if target is not None and (on_tape is None or on_tape.autoregressive):
            self._check_target(target, rows, longest)
        if on_tape is None:
            return self._on_the_word(tokens, lengths, target)
        if on_tape.autoregressive:
            return self._one_by_one(tokens, lengths, target, on_tape.computation)
        made = tasks.tape(self.task, tokens, lengths, computation=on_tape.computation)
        return self._run(made, longest, lengths is not None)

    def run(self, x: Tensor, reading: Reading, target: Tensor | None = None) -> Tensor:
        """The network itself."""
        logits: Tensor = self.network(x, reading, target)
        return logits

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

    def _run(self, made: Tape, tokens: int, mixed: bool) -> Tensor:
        """The network over a tape of words of `tokens` tokens, or of mixed ones."""
        x, answers = made.one_hot(self.dtype), made.answers.shape[1]
        if mixed:
            reading = Reading(
                0, x.shape[1], made.input_lengths, made.answer_counts, made.answers, made.lengths
            )
        else:
            start = tokens * (1 + made.computation)
            reading = Reading(start, start + answers, tokens, answers)
        return self.run(x, reading)

    def _one_by_one(
        self, tokens: Tensor, lengths: Tensor | None, target: Tensor | None, computation: int
    ) -> Tensor:
        """Answers behind each other: the true ones, or what the model itself answers."""
        longest = tokens.shape[1]

        def logits(answers: Tensor) -> Tensor:
            made = tasks.tape(self.task, tokens, lengths, computation=computation, earlier=answers)
            return self._run(made, longest, lengths is not None)

        if target is not None:
            return logits(target)
        count = self.task.output_length(longest)
        answers = torch.full((len(tokens), count), UNKNOWN, device=tokens.device)
        for place in range(count):
            said = logits(answers)
            answers[:, place] = said[:, place].argmax(-1)
        return said

    def _on_the_word(self, tokens: Tensor, lengths: Tensor | None, target: Tensor | None) -> Tensor:
        """A network that has no tape: the word alone."""
        longest = tokens.shape[1]
        known = torch.arange(self.task.input_size, device=tokens.device)
        x = (tokens[..., None] == known).to(self.dtype)
        count = self.task.output_length(longest)
        if lengths is None:
            reading = Reading(0, count, longest, count)
        else:
            counts = self.task.output_length(lengths)
            reading = Reading(0, count, lengths, counts, lengths=lengths)
        return self.run(x, reading, target)

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
