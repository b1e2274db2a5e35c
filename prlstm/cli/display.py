"""What a user sees while runs are trained: a live table on a terminal, plain lines otherwise."""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from prlstm.cli.tables import duration, percent, plain_table
from prlstm.training import Event, Report, RunFolder
from prlstm.training.events import Begun, Block, Noted, Scored, Scoring, Stepped, Stopped, Validated
from prlstm.training.results import result

# seconds between two plain lines, and over which the speed is taken
EVERY, WINDOW = 10.0, 5.0
# seeds that have a line of their own on a terminal
MOST_SHOWN = 20


@dataclass
class Seen:
    """What was last heard of one run."""

    loss: float | None = None
    accuracy: float | None = None
    validated: float | None = None
    score: float | None = None
    note: str = ""


@dataclass
class Standing:
    """What was last heard of all of them."""

    runs: dict[RunFolder, Seen]
    step: int = 0
    steps: int = 1
    what: str = "starting"
    note: str = ""
    share: float | None = None
    times: deque[tuple[float, int]] = field(default_factory=deque)

    def hear(self, event: Event) -> None:
        """Take note of an event."""
        match event:
            case Begun():
                self.step, self.steps, self.what = event.step, event.steps, "training"
                self.times.clear()
            case Stepped():
                self.step = event.step
                self._time()
            case Block():
                for folder, loss, accuracy in zip(
                    event.folders, event.loss.tolist(), event.accuracy.tolist(), strict=True
                ):
                    self.runs[folder].loss, self.runs[folder].accuracy = loss, accuracy
            case Validated():
                self.runs[event.folder].validated = event.accuracy
            case Stopped():
                self.runs[event.folder].note = event.why
            case Noted():
                self.note = event.line
            case Scoring():
                self.what, self.share = f"scoring the {event.weights} weights", event.share
            case Scored() if event.weights == "last":
                self.runs[event.folder].score = event.score
            case _:
                pass

    @property
    def done(self) -> float:
        """The share of the work that is done."""
        return self.step / self.steps if self.share is None else self.share

    @property
    def speed(self) -> float | None:
        """Steps per second."""
        if len(self.times) < 2 or self.times[-1][0] == self.times[0][0]:
            return None
        (before, first), (now, last) = self.times[0], self.times[-1]
        return (last - first) / (now - before)

    def said(self) -> str:
        """All in a line but for the seeds."""
        if self.share is not None:
            return f"{self.what}: {100 * self.share:.0f} % done"
        if not self.times:
            return self.what
        parts = [f"{self.what}  step {self.step:,} of {self.steps:,}"]
        if self.speed:
            parts.append(f"{self.speed:,.{0 if self.speed >= 10 else 1}f} steps/s")
            parts.append(f"{duration((self.steps - self.step) / self.speed)} left")
        return "  ".join(parts)

    def _time(self) -> None:
        now = time.monotonic()
        self.times.append((now, self.step))
        while now - self.times[0][0] > WINDOW and len(self.times) > 2:
            self.times.popleft()


@contextmanager
def display(console: Console, folders: Sequence[RunFolder]) -> Iterator[Report]:
    """Show what is reported."""
    standing = Standing({folder: Seen(score=_last_score(folder)) for folder in folders})
    if not console.is_terminal:
        yield _Lines(console, standing)
        return
    screen = _Screen(standing)
    with Live(screen, console=console, refresh_per_second=8, transient=True):
        yield standing.hear


def _last_score(folder: RunFolder) -> float | None:
    """What the run scored before, if it did."""
    return result(folder).score if folder.path.exists() else None


class _Lines:
    """A line now and then: for files and pipes."""

    def __init__(self, console: Console, standing: Standing) -> None:
        self.console, self.standing = console, standing
        self.last, self.is_heard = time.monotonic(), True

    def __call__(self, event: Event) -> None:
        self.standing.hear(event)
        now = time.monotonic()
        match event:
            case Stopped():
                self._print(f"seed {event.folder.config.seed} stopped: {event.why}")
            case Validated():
                best = ", its best" if event.best else ""
                self._print(
                    f"step {event.step:,}: seed {event.folder.config.seed} validates at "
                    f"{percent(event.accuracy)}{best}"
                )
            case Noted():
                self._print(event.line)
            case Block() if now - self.last >= EVERY or event.step == self.standing.steps:
                losses = " ".join(f"{loss:.4f}" for loss in event.loss.tolist())
                shares = " ".join(percent(share) for share in event.accuracy.tolist())
                self._print(f"{self.standing.said()}  loss {losses}  accuracy {shares}")
                self.last = now
            case Scoring() if now - self.last >= EVERY or event.share == 1:
                self._print(self.standing.said())
                self.last = now
            case _:
                pass

    def _print(self, line: str) -> None:
        if self.is_heard:
            try:
                self.console.print(line, highlight=False, markup=False, soft_wrap=True)
            except (BrokenPipeError, SystemExit):
                # nobody reads any more, which is no reason to stop: what is said is on disk too
                self.is_heard = False


class _Screen:
    """The live table."""

    def __init__(self, standing: Standing) -> None:
        self.standing = standing

    def __rich__(self) -> RenderableType:
        standing = self.standing
        bar = Table.grid(padding=(0, 1))
        width = ProgressBar(total=1.0, completed=standing.done, width=30)
        bar.add_row(width, Text(standing.said()))
        table = plain_table(["seed"], ["loss", "accuracy", "validation", "score", ""])
        shown = list(standing.runs.items())[:MOST_SHOWN]
        for folder, seen in shown:
            loss = "-" if seen.loss is None else f"{seen.loss:.4f}"
            shares = map(percent, (seen.accuracy, seen.validated, seen.score))
            table.add_row(str(folder.config.seed), loss, *shares, Text(seen.note))
        more = len(standing.runs) - len(shown)
        below = [f"and {more} more seeds" if more else "", standing.note]
        return Group(bar, table, *(Text(line) for line in below if line))
