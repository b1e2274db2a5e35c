"""Cells of a table made one after the other, or several at a time in processes of their own."""

import gc
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

import torch

from prlstm.experiments.memory import ran_out_of_memory, said
from prlstm.experiments.runs import Store, Wanted, make
from prlstm.training import Event, Request
from prlstm.training.events import Begun, Block, Noted, Scoring, Stepped, Stopped

# seconds between two messages of a process, and between two looks whether it is still there
EVERY, LOOK = 0.25, 1.0
# what is heard of a cell that nobody makes yet
WAITING = "waiting for a place"


@dataclass(frozen=True)
class Heard:
    """How far a cell is, or a `line` that somebody may want to read."""

    cell: int
    what: str
    step: int = 0
    steps: int = 0
    loss: float | None = None
    line: str | None = None


Listener = Callable[[Heard], None]
# which cell is made next, of those that are not in the making, and as far as what
Choice = Callable[[Collection[int]], tuple[int, Request] | None]
# what makes the cells that are chosen, and tells what could not be made: `work`, or a cluster
Work = Callable[[Sequence[Wanted], Choice, Store, torch.device, Listener], list[str]]


def work(
    cells: Sequence[Wanted],
    choose: Choice,
    store: Store,
    device: torch.device,
    listen: Listener,
    jobs: int = 1,
) -> list[str]:
    """Make what is chosen, until nothing is; what could not be made is told at the end.

    An interrupt is passed on: every cell in the making saves, and it is raised again.
    """
    if jobs == 1:
        return _one_by_one(cells, choose, store, device, listen)
    return _Crew(cells, choose, store, device, listen).work(jobs)


def _one_by_one(
    cells: Sequence[Wanted], choose: Choice, store: Store, device: torch.device, listen: Listener
) -> list[str]:
    failures: dict[int, str] = {}
    while (chosen := choose(failures.keys())) is not None:
        number, request = chosen
        why = None
        try:
            make(cells[number], request, store, device, Teller(number, listen, request.steps))
        except (BlockingIOError, MemoryError, RuntimeError) as failed:
            why = _reason(failed)
        # what is not answered now would be chosen for ever
        if why is None and store.missing(cells[number], request):
            why = "no row answers it"
        if why is None:
            listen(Heard(number, "done", request.steps, request.steps))
        else:
            failures[number] = f"{cells[number].name}: {why}"
            listen(Heard(number, "failed", line=why))
    return list(failures.values())


def _reason(failed: BaseException) -> str:
    """Why a cell cannot be made while others can: somebody else makes it, or it is too large."""
    if isinstance(failed, BlockingIOError):
        return str(failed)
    if not ran_out_of_memory(failed):
        raise failed
    # for those that come after it
    gc.collect()
    torch.cuda.empty_cache()
    return said(failed)


class _Crew:
    """Processes, one for each cell in the making."""

    def __init__(
        self,
        cells: Sequence[Wanted],
        choose: Choice,
        store: Store,
        device: torch.device,
        listen: Listener,
    ) -> None:
        self.cells, self.choose, self.store, self.device = cells, choose, store, device
        self.listen = listen
        self.busy: dict[Connection, tuple[int, BaseProcess]] = {}
        self.failures: dict[int, str] = {}

    def work(self, jobs: int) -> list[str]:
        """Keep so many processes busy."""
        try:
            while True:
                while len(self.busy) < jobs and self._begin(jobs):
                    pass
                if not self.busy:
                    return list(self.failures.values())
                self._hear()
        except KeyboardInterrupt:
            for _, process in self.busy.values():
                process.terminate()
            for _, process in self.busy.values():
                process.join()
            raise

    def _begin(self, jobs: int) -> bool:
        """Begin one more cell, if there is one."""
        taken = {number for number, _ in self.busy.values()} | self.failures.keys()
        chosen = self.choose(taken)
        if chosen is None:
            return False
        number, request = chosen
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        threads = max(1, (os.cpu_count() or 1) // jobs)
        given = (number, self.cells[number], request, self.store, str(self.device), threads, theirs)
        process = context.Process(target=_alone, args=given)
        process.start()
        # ours ends when the process does
        theirs.close()
        self.busy[ours] = number, process
        return True

    def _hear(self) -> None:
        """What processes say, and which of them ended."""
        for connection in wait(list(self.busy), LOOK):
            assert isinstance(connection, Connection)
            number, process = self.busy[connection]
            try:
                heard = connection.recv()
            except EOFError:
                process.join()
                del self.busy[connection]
                self._ended(number, process.exitcode)
                continue
            if heard.what == "failed":
                self._fail(number, heard.line)
            else:
                self.listen(heard)

    def _ended(self, number: int, code: int | None) -> None:
        if code == 0:
            self.listen(Heard(number, "done"))
        elif number not in self.failures:
            self._fail(number, f"its process ended with code {code}")

    def _fail(self, number: int, why: str) -> None:
        self.failures[number] = f"{self.cells[number].name}: {why}"
        self.listen(Heard(number, "failed", line=why))


def _alone(
    number: int,
    wanted: Wanted,
    request: Request,
    store: Store,
    device: str,
    threads: int,
    to: Connection,
) -> None:
    """What a process does, with its share of the processor."""
    torch.set_num_threads(threads)
    # an interrupt from the keyboard reaches the one that began it, who passes it on
    os.setsid()
    parent, tell, is_alone = os.getppid(), Teller(number, to.send, request.steps), False

    def report(event: Event) -> None:
        nonlocal is_alone
        if is_alone:
            return
        if os.getppid() != parent:
            # the one that began it was killed: nothing of what was trained is lost
            is_alone = True
            signal.raise_signal(signal.SIGTERM)
            return
        with suppress(BrokenPipeError):
            tell(event)

    try:
        make(wanted, request, store, torch.device(device), report)
    except (BlockingIOError, MemoryError, RuntimeError) as failed:
        with suppress(BrokenPipeError):
            to.send(Heard(number, "failed", line=_reason(failed)))
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


@dataclass
class Teller:
    """Events of training, as they are told of a cell: not all of them.

    `steps` is how far it is made; a cell that is trained already is only scored.
    """

    number: int
    listen: Listener
    steps: int = 0
    loss: float | None = None
    last: float = field(default=0.0)

    def __call__(self, event: Event) -> None:
        """Tell of an event, or not."""
        match event:
            case Begun():
                self.steps = event.steps
                self._say("training", event.step)
            case Block():
                self.loss = float(event.loss.mean())
            case Stepped() if time.monotonic() - self.last > EVERY:
                self._say("training", event.step)
            case Scoring() if time.monotonic() - self.last > EVERY or event.share == 1:
                self._say(f"scoring, {100 * event.share:.0f} %", self.steps)
            case Stopped():
                line = f"seed {event.folder.config.seed} stopped: {event.why}"
                self.listen(Heard(self.number, "training", event.step, self.steps, line=line))
            case Noted():
                self.listen(Heard(self.number, "training", line=event.line))
            case _:
                pass

    def _say(self, what: str, step: int) -> None:
        self.last = time.monotonic()
        self.listen(Heard(self.number, what, step, self.steps, self.loss))
