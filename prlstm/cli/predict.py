"""`prlstm predict`."""

import codecs
import re
import sys
from collections.abc import Iterator
from typing import Annotated, BinaryIO

import typer

from prlstm.cli.given import ROOT, find_model, read_device, told
from prlstm.cli.train import Device, Root, Which
from prlstm.models.folder import load
from prlstm.models.model import Model
from prlstm.models.streaming import WordStream
from prlstm.tasks import Task

# bytes that are taken at once, if so many are there
PIECE = 1 << 16


def predict(
    run: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A model that comes with the package, as parity_check; a folder; a run's name.",
        ),
    ],
    every: Annotated[
        int | None,
        typer.Option(min=1, help="Answer after every so many tokens too: tokens, tab, answer."),
    ] = None,
    weights: Which = "last",
    device: Device = "auto",
    root: Root = ROOT,
) -> None:
    """Answer words from standard input: one answer for each line.

    Words are written as `prlstm tasks show` shows them; spaces are free. A line may be endless:
    models with a state read it in constant memory.
    """
    with told():
        model = load(find_model(run, root), read_device(device), weights=weights)
    if sys.stdin.isatty():
        symbols = " ".join(symbol.strip() for symbol in model.task.symbols)
        name = model.task.paper_name
        typer.echo(f"{name}: words of {symbols}, one a line; Ctrl-D ends", err=True)
    wrong = 0
    line = _Line(model, 1, every)
    with told():
        for piece, ends in _pieces(sys.stdin.buffer):
            line.read(piece, ends=ends)
            if ends:
                wrong += line.answer()
                line = _Line(model, line.number + 1, every)
    if wrong:
        raise typer.Exit(1)


class _Line:
    """One line of the input, read piece by piece."""

    def __init__(self, model: Model, number: int, every: int | None) -> None:
        self.task, self.number, self.every = model.task, number, every
        self.word = WordStream(model)
        self.reader = _Tokens(model.task)
        self.wrong: str | None = None

    def read(self, text: str, *, ends: bool) -> None:
        """Go on with the word; behind a sign that is none of the task's the rest is skipped."""
        if self.wrong is not None:
            return
        try:
            tokens = self.reader.read(text, ends=ends)
        except ValueError as wrong:
            self.wrong = str(wrong)
            return
        while tokens:
            ahead = len(tokens)
            if self.every is not None:
                ahead = self.every - self.word.count % self.every
            self.word.feed(tokens[:ahead])
            tokens = tokens[ahead:]
            if self.every is not None and self.word.count % self.every == 0:
                self._print(f"{self.word.count}\t")

    def answer(self) -> bool:
        """Print the answer; whether there is none."""
        if self.wrong is None and not self.word.count:
            self.wrong = "the line is empty: expected a word"
        if self.wrong is not None:
            # a line for every line
            typer.echo("")
            typer.echo(f"line {self.number}: {self.wrong}", err=True)
            return True
        done = self.every is not None and self.word.count % self.every == 0
        if not done:
            self._print("" if self.every is None else f"{self.word.count}\t")
        return False

    def _print(self, before: str) -> None:
        """The answer, as it comes."""
        typer.echo(before, nl=False)
        ended = False
        for answer in self.word.answer():
            if not ended:
                typer.echo(self.task.answer_symbols[answer], nl=False)
            # what comes behind the end of an answer is no part of it
            ended = ended or answer == self.task.terminator
        typer.echo("")
        sys.stdout.flush()


class _Tokens:
    """Text to tokens; a sign that is cut in two waits for its other half."""

    def __init__(self, task: Task) -> None:
        self.task, self.waiting = task, ""
        self.longest = max(len(symbol.strip()) for symbol in task.symbols)

    def read(self, text: str, *, ends: bool) -> list[int]:
        """The tokens that are complete."""
        text = self.waiting + text
        kept = 0 if ends else self.longest - 1
        # never between the two halves: cut where a sign begins
        cut = len(text) - kept
        starts = [m.start() for m in self._signs(text) if m.start() >= cut] if kept else []
        cut = starts[0] if starts else len(text)
        self.waiting = text[cut:]
        return self.task.read(text[:cut])

    def _signs(self, text: str) -> Iterator["re.Match[str]"]:
        symbols = sorted((symbol.strip() for symbol in self.task.symbols), key=len, reverse=True)
        return re.finditer("|".join(map(re.escape, symbols)) + r"|\S", text)


def _pieces(stream: BinaryIO) -> Iterator[tuple[str, bool]]:
    """The text of every line in pieces, and whether the line ends behind a piece."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    open_line = False
    while piece := stream.read1(PIECE):  # type: ignore[attr-defined]
        *whole, rest = decoder.decode(piece).split("\n")
        for line in whole:
            yield line, True
        if rest:
            yield rest, False
        open_line = bool(rest) or (open_line and not whole)
    # half a sign at the very end is one that nobody knows
    rest = decoder.decode(b"", final=True)
    if open_line or rest:
        yield rest, True
