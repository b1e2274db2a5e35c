"""What a task is: words, their labels by definition, and a sampler for any device."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar, Literal, TypeVar, get_args

import torch
from torch import Tensor

from prlstm.tasks.batch import Batch
from prlstm.tasks.check import (
    Lengths,
    batch_shape,
    read_count,
    read_integers,
    read_lengths,
    read_words,
)
from prlstm.tasks.floors import Floors, measure_floors
from prlstm.tasks.uniform import positions

Level = Literal["R", "DCF", "CS"]
# regular, deterministic context-free, context-sensitive
LEVELS: tuple[Level, ...] = get_args(Level)
# a number of tokens: of one word, or of every row of a batch
Size = TypeVar("Size", int, Tensor)
# stands for an answer that no accuracy counts
UNCOUNTED = "·"
# of a text that is wrong, so much is shown
MOST_SHOWN = 60


class Task(ABC):
    """A formal language: words over a small alphabet, and the answer to each.

    A task says two things, independently of each other: `label`, the definition, one word at a
    time in plain Python; and `draw`, which makes words and answers of many rows from uniform
    numbers. Everything else follows from these.

    `symbols` shows every input token, `answer_symbols` every class; their numbers are
    `input_size` and `output_size`. `terminator` is the class that ends an answer: what lies
    behind it is zero, trained on, and not counted by the accuracy.
    """

    name: ClassVar[str]
    paper_name: ClassVar[str]
    level: ClassVar[Level]
    symbols: ClassVar[Sequence[str]]
    answer_symbols: ClassVar[Sequence[str]]
    terminator: ClassVar[int | None] = None

    @abstractmethod
    def label(self, word: Sequence[int]) -> list[int]:
        """The answer to one word, by definition; ValueError for a word not of the language.

        `word` is a list of tokens, all of the alphabet (`target` checks that). Zeros that fill up
        an answer may be left out.
        """

    @abstractmethod
    def draw(self, numbers: Tensor, n: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """Words (B, longest) and their answers (B, output_length(longest)).

        `numbers` (B, draws(longest)) are uniform in [0, 1), `n` (B,) is the length of every row.
        What is behind a row's end may be anything. A row of length n may read no more than its
        first draws(n) numbers, so that it is the same alone and beside longer ones. Shapes
        depend on shapes alone, and nothing is read back to the host.
        """

    @property
    def input_size(self) -> int:
        """The number of input tokens."""
        return len(self.symbols)

    @property
    def output_size(self) -> int:
        """The number of classes."""
        return len(self.answer_symbols)

    @property
    def single_output(self) -> bool:
        """Whether one class answers a word, whatever its length."""
        return self.output_length(10) == 1

    @cached_property
    def floors(self) -> Floors:
        """What guessing reaches over lengths 41 to 500."""
        return measure_floors(self)

    def input_length(self, length: Size) -> Size:
        """How many tokens a word has when `length` is asked for."""
        return length

    def output_length(self, n: Size) -> Size:
        """How many answers a word of `n` tokens has: arithmetic that takes a tensor as well."""
        # one, as an integer or as a tensor
        return n**0

    def draws(self, n: int) -> int:
        """How many uniform numbers a word of `n` tokens is made of."""
        return n

    def sample(
        self,
        batch_size: int | None = None,
        length: int | None = None,
        *,
        lengths: Lengths | None = None,
        generator: torch.Generator | None = None,
        device: torch.device | str | None = None,
    ) -> Batch:
        """Random words and their answers.

        Either `batch_size` words of one `length`, or one word for each of `lengths`: those asked
        for, `batch.lengths` are those of the words. The generator may live on another device than
        the batch; without one, PyTorch's own is used. It fills a tensor of numbers (B, draws), row
        by row, and `sample_from` does the rest.
        """
        asked: int | Tensor
        if lengths is not None:
            if batch_size is not None or length is not None:
                raise ValueError("lengths= stands in place of batch_size and length: give one")
            asked = read_lengths(lengths, wait=True)
            rows, longest = len(asked), int(asked.max())
        elif batch_size is None and length is None:
            raise TypeError("expected batch_size and length, or lengths")
        else:
            rows = read_count("batch_size", batch_size)
            asked = longest = read_count("length", length)
        if isinstance(generator, torch.Generator):
            source = generator.device
        elif generator is not None:
            raise TypeError(f"generator={generator!r}: expected a torch.Generator")
        else:
            source = torch.get_default_device() if device is None else torch.device(device)
        wide = self.draws(self.input_length(longest))
        numbers = torch.rand(rows, wide, generator=generator, device=source, dtype=torch.float32)
        if device is not None:
            numbers = numbers.to(device)
        return self.sample_from(numbers, asked, longest if isinstance(asked, Tensor) else None)

    def sample_from(
        self, numbers: Tensor, length: int | Lengths, longest: int | None = None
    ) -> Batch:
        """The batch that uniform numbers (B, draws) in [0, 1) make: a pure function of them.

        `length` is one for all rows, or one for each; then `longest`, the greatest, is read from
        them unless it is given. With numbers (and lengths) already on a GPU, and `longest` given,
        nothing is checked there and nothing waits for it, so that all of it can be captured in a
        CUDA graph.
        """
        if not isinstance(numbers, Tensor) or numbers.dtype not in (torch.float32, torch.float64):
            raise TypeError(f"numbers={numbers!r:.80}: expected a tensor of float32 or float64")
        if numbers.dim() != 2 or len(numbers) == 0:
            raise ValueError(
                f"numbers of shape {tuple(numbers.shape)}: expected (B, draws), B >= 1"
            )
        is_mixed = isinstance(length, (Tensor, Sequence))
        if isinstance(length, (Tensor, Sequence)):
            if longest is not None:
                longest = read_count("longest", longest)
            lengths = read_lengths(length, len(numbers), longest)
            longest = int(lengths.max()) if longest is None else longest
            n = self.input_length(lengths.to(numbers.device))
            longest = self.input_length(longest)
        elif longest is not None:
            raise ValueError(f"longest={longest}: expected none where all rows have one length")
        else:
            longest = self.input_length(read_count("length", length))
            n = torch.full(numbers.shape[:1], longest, device=numbers.device)
        if numbers.shape[1] != self.draws(longest):
            raise ValueError(
                f"numbers of shape {tuple(numbers.shape)}: expected (B, {self.draws(longest)}) "
                f"for words of {longest} tokens"
            )
        if numbers.device.type == "cpu" and not ((numbers >= 0) & (numbers < 1)).all():
            raise ValueError("numbers: expected 0 <= number < 1 everywhere")
        with torch.no_grad():
            tokens, answers = self.draw(numbers, n, longest)
        expected = (len(n), longest), (len(n), self.output_length(longest))
        if (tokens.shape, answers.shape) != expected:
            raise ValueError(
                f"{self.name}.draw gave words {tuple(tokens.shape)} and answers "
                f"{tuple(answers.shape)}: expected {expected[0]} and {expected[1]}"
            )
        if not is_mixed:
            # nothing is behind the end of a row
            loss_mask = torch.ones_like(answers, dtype=torch.bool)
            return Batch(tokens, answers, self._counted(answers), loss_mask, n)
        inside = positions(longest, tokens) < n[:, None]
        loss_mask = self._answered(n, longest)
        target = answers * loss_mask
        mask = self._counted(target) & loss_mask
        return Batch(tokens * inside, target, mask, loss_mask, n)

    def target(self, tokens: Tensor, lengths: Lengths | None = None) -> Tensor:
        """The answers (B, O) to words (B, L), by definition: slow, exact, one word at a time."""
        words = read_words(tokens, lengths, self.input_size)
        width = self.output_length(tokens.shape[1])
        answers = [self._label_row(row, word) for row, word in enumerate(words)]
        padded = [answer + [0] * (width - len(answer)) for answer in answers]
        return torch.tensor(padded, device=tokens.device)

    def mask(self, target: Tensor, lengths: Lengths | None = None) -> Tensor:
        """Which answers (B, O) the accuracy counts; `lengths` are those of the words, if mixed."""
        batch_shape(target)
        mask = self._counted(target)
        if lengths is not None:
            n = read_lengths(lengths, len(target)).to(target.device)
            answer = positions(target.shape[1], target)
            mask = mask & (answer < self.output_length(n)[:, None])
        return mask

    def show(self, tokens: Tensor | Sequence[int]) -> str:
        """One word as a person reads it."""
        return "".join(self._named(tokens, self.symbols))

    def read(self, text: str) -> list[int]:
        """The tokens of a word as `show` writes it; spaces are free."""
        symbols = [symbol.strip() for symbol in self.symbols]
        # the longest first: +0 before +
        known = "|".join(re.escape(symbol) for symbol in sorted(symbols, key=len, reverse=True))
        found = re.findall(rf"({known})|(\S)", text)
        for symbol, other in found:
            if not symbol:
                shown = repr(text) if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]!r}..."
                raise ValueError(f"text={shown}: {other!r} is none of {' '.join(symbols)}")
        return [symbols.index(symbol) for symbol, _ in found]

    def show_answer(self, target: Tensor | Sequence[int]) -> str:
        """One answer as a person reads it; what no accuracy counts is a dot."""
        ids = torch.as_tensor(target)
        names = self._named(ids, self.answer_symbols)
        counted = self.mask(ids[None])[0].tolist()
        return "".join(name if yes else UNCOUNTED for name, yes in zip(names, counted, strict=True))

    def _counted(self, target: Tensor) -> Tensor:
        """Up to and including the terminator, where there is one."""
        if self.terminator is None:
            return torch.ones_like(target, dtype=torch.bool)
        ends = target == self.terminator
        return ends.cumsum(1) <= ends

    def _answered(self, n: Tensor, longest: int) -> Tensor:
        """Which of the answers (B, O) a row has."""
        answer = positions(self.output_length(longest), n)
        return answer < self.output_length(n)[:, None]

    def _label_row(self, row: int, word: list[int]) -> list[int]:
        try:
            return self.label(word)
        except ValueError as wrong:
            raise ValueError(f"tokens[{row}]={self.show(word)!r}: {wrong}") from None

    @staticmethod
    def _named(ids: Tensor | Sequence[int], symbols: Sequence[str]) -> list[str]:
        tokens = read_integers("tokens", ids)
        if tokens.dim() != 1:
            raise ValueError(f"tokens of shape {tuple(tokens.shape)}: expected one word (L,)")
        (word,) = read_words(tokens[None], None, len(symbols))
        return [symbols[token] for token in word]

    def __repr__(self) -> str:
        return f"<task {self.name}: {self.paper_name}, {self.level}>"
