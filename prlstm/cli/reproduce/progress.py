"""What a user sees while cells of a table are made: a live table, or lines now and then."""

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from prlstm.cli.tables import duration, plain_table
from prlstm.experiments.crew import WAITING, Heard, Listener
from prlstm.experiments.runs import Wanted

# seconds between two plain lines of a cell
EVERY = 10.0


@dataclass
class Standing:
    """What was last heard of all cells; `steps` is how far each shall go, `ends` a deadline."""

    cells: Sequence[Wanted]
    steps: int
    done: set[int]
    ends: float | None
    begun: float = field(default_factory=time.monotonic)
    active: dict[int, Heard] = field(default_factory=dict)
    waiting: set[int] = field(default_factory=set)
    first: dict[int, int] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)
    # when a cell was last heard of, and seconds of all cells together: in training, in scores
    at: dict[int, float] = field(default_factory=dict)
    training: float = 0.0
    scoring: dict[int, float] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def hear(self, heard: Heard) -> None:
        """Take note of a message."""
        self._take_time(heard.cell)
        self.waiting.discard(heard.cell)
        if heard.what in ("done", "failed", WAITING):
            self.active.pop(heard.cell, None)
            if heard.what == WAITING:
                self.waiting.add(heard.cell)
            if heard.what == "done":
                self.done.add(heard.cell)
        elif heard.line is None:
            self.active[heard.cell] = heard
            self.first.setdefault(heard.cell, heard.step)
            self.last[heard.cell] = heard.step
        if heard.line is not None:
            self.lines.append(f"{self.cells[heard.cell].name}: {heard.line}")

    @property
    def left(self) -> float | None:
        """Seconds that are left, as far as anybody can know."""
        if self.ends is not None:
            return max(0.0, self.ends - time.monotonic())
        made = sum(self.last[cell] - self.first[cell] for cell in self.last)
        scores = [spent for cell, spent in self.scoring.items() if cell in self.done]
        # how long a score takes is known with the first one
        if not made or not self.training or (self.scoring and not scores):
            return None
        open_cells = set(range(len(self.cells))) - self.done
        missing = sum(self.steps - self.last.get(cell, 0) for cell in open_cells)
        each = statistics.mean(scores) if scores else 0.0
        rest = sum(max(0.0, each - self.scoring.get(cell, 0.0)) for cell in open_cells)
        at_a_time = (self.training + sum(self.scoring.values())) / (time.monotonic() - self.begun)
        return (missing * self.training / made + rest) / at_a_time

    def _take_time(self, cell: int) -> None:
        """Until now a cell did what was last heard of it."""
        now, before = time.monotonic(), self.active.get(cell)
        spent = now - self.at.get(cell, now)
        self.at[cell] = now
        if before is not None and before.what.startswith("scoring"):
            self.scoring[cell] = self.scoring.get(cell, 0.0) + spent
        elif before is not None:
            self.training += spent

    def said(self) -> str:
        """How much is done, and how long the rest takes."""
        left = self.left
        rest = "" if left is None else f", {duration(left)} left"
        # within a budget a cell comes again and again
        what = "done" if self.ends is None else "seen"
        cells = "cell" if len(self.cells) == 1 else "cells"
        said = f"{len(self.done)} of {len(self.cells)} {cells} {what}{rest}"
        if not self.waiting:
            return said
        units = "1 unit waits" if len(self.waiting) == 1 else f"{len(self.waiting)} units wait"
        return f"{said}; {units} for a place"


@contextmanager
def shown(
    console: Console, cells: Sequence[Wanted], steps: int, done: set[int], ends: float | None
) -> Iterator[Listener]:
    """Show what is heard."""
    standing = Standing(cells, steps, done, ends)
    if not console.is_terminal:
        yield _Lines(console, standing)
        return
    screen = _Screen(standing)
    with Live(screen, console=console, refresh_per_second=4, transient=True):
        yield standing.hear
    for line in standing.lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


class _Lines:
    """Lines for files and pipes: when a cell begins, now and then, and when it ends."""

    def __init__(self, console: Console, standing: Standing) -> None:
        self.console, self.standing = console, standing
        # when a line was told of a cell; of all together that wait, as of one
        self.told: dict[int | None, float] = {}

    def __call__(self, heard: Heard) -> None:
        # one that has said so before: by now all others that wait have as well
        is_still = heard.cell in self.standing.waiting
        self.standing.hear(heard)
        name = self.standing.cells[heard.cell].name
        now = time.monotonic()
        if heard.line is not None:
            self._print(f"{name}: {heard.line}")
        elif heard.what == "done":
            self.told.pop(heard.cell, None)
            self._print(f"{name}: done; {self.standing.said()}")
        elif heard.what == WAITING:
            if is_still and now - self.told.get(None, -EVERY) >= EVERY:
                self.told[None] = now
                self._print(self.standing.said())
        elif now - self.told.get(heard.cell, -EVERY) >= EVERY:
            self.told[heard.cell] = now
            self._print(f"{name}: {_how_far(heard)}; {self.standing.said()}")

    def _print(self, line: str) -> None:
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)


def _how_far(heard: Heard) -> str:
    loss = "" if heard.loss is None else f", loss {heard.loss:.4f}"
    return f"{heard.what}, step {heard.step:,} of {heard.steps:,}{loss}"


class _Screen:
    """The live table: a line for each cell in the making."""

    def __init__(self, standing: Standing) -> None:
        self.standing = standing

    def __rich__(self) -> RenderableType:
        standing = self.standing
        bar = Table.grid(padding=(0, 1))
        share = len(standing.done) / max(1, len(standing.cells))
        bar.add_row(ProgressBar(total=1.0, completed=share, width=30), Text(standing.said()))
        table = plain_table(["", "", ""], ["step", "of", "loss"])
        for number, heard in list(standing.active.items()):
            done = ProgressBar(total=max(1, heard.steps), completed=heard.step, width=16)
            loss = "-" if heard.loss is None else f"{heard.loss:.4f}"
            table.add_row(
                standing.cells[number].name, done, Text(heard.what), f"{heard.step:,}",
                f"{heard.steps:,}", loss,
            )  # fmt: skip
        return Group(bar, table, *(Text(line) for line in standing.lines[-3:]))
