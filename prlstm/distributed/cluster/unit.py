"""A cell in the making on some node: an actor, which needs no driver while it works."""

import faulthandler
import os
import socket
import threading
import time
import traceback
import warnings
from collections import deque
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import ray
import torch

from prlstm.distributed.cluster.storage import MARK, is_seen
from prlstm.experiments.crew import Heard, Teller
from prlstm.experiments.runs import Store, Wanted, make
from prlstm.training import Event, Request
from prlstm.training.events import Scoring
from prlstm.training.interrupt import Interrupt, interrupted_by

# seconds: between two lines of a log, and two tries of a lock; how long a lock is waited for, which
# a node that was lost may hold for a while; and how long a unit that ended waits for a driver
LINE, TRY, LOCKED, ASKED = 10.0, 0.5, 600.0, 60.0


@dataclass(frozen=True)
class Order:
    """What a unit makes, and where; `mark` tells the storage from a folder of the same name."""

    wanted: Wanted
    request: Request
    store: Store
    device: str
    threads: int
    mark: str


def log_of(wanted: Wanted, store: Store) -> Path:
    """Where the unit of a cell writes what happens to it."""
    first, *others = wanted.configs
    more = f"+{len(others)}" if others else ""
    return store.runs / "logs" / f"{first.name}{more}.log"


@dataclass(frozen=True)
class Said:
    """What a unit last told, and lines since it was asked last; how it ended, if it did.

    A unit that ended is `done`, or `stopped`; or `failed`, or `misplaced` on a `node` that does not
    see the storage, and then `why` tells more.
    """

    request: Request
    heard: Heard | None = None
    lines: tuple[str, ...] = ()
    ended: str | None = None
    why: str = ""
    node: str = ""


class MisplacedError(OSError):
    """This node does not see the storage of the others."""


class Unit:
    """The actor. It works in a thread, and so can be asked; begun again, it goes on by itself."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.lines: deque[str] = deque()
        self.interrupt = Interrupt()
        self.asked = time.monotonic()
        context = ray.get_runtime_context()
        self.said = Said(order.request, node=context.get_node_id())
        with warnings.catch_warnings():
            # Ray asks itself what it has deprecated
            warnings.simplefilter("ignore")
            self.is_again = context.was_current_actor_reconstructed
        threading.Thread(target=self._work, daemon=True).start()

    def tell(self) -> Said:
        """How far it is."""
        self.asked = time.monotonic()
        # first how it ended: whoever hears that asks for no more lines
        said = self.said
        return replace(said, lines=tuple(self.lines.popleft() for _ in range(len(self.lines))))

    def stop(self) -> None:
        """Save, and end."""
        self.interrupt.asked = True

    def _work(self) -> None:
        # of this thread alone
        torch.set_num_threads(self.order.threads)
        try:
            self._make_logged()
            ended, why = "done", ""
        except KeyboardInterrupt:
            ended, why = "stopped", ""
        except MisplacedError as wrong:
            ended, why = "misplaced", str(wrong)
        except BaseException as failed:
            ended, why = "failed", f"{type(failed).__name__}: {failed}"
        self.said = replace(self.said, ended=ended, why=why)
        # without a driver it would keep its place for ever
        while time.monotonic() - self.asked < ASKED:
            time.sleep(1)
        ray.kill(ray.get_runtime_context().current_actor, no_restart=True)

    def _make_logged(self) -> None:
        """Make the cell; all that is said goes into the log as well."""
        order = self.order
        if not is_seen(order.store.runs / MARK, order.mark):
            raise MisplacedError(
                f"node {socket.gethostname()}: {order.store.runs}: not the storage of the others"
            )
        path = log_of(order.wanted, order.store)
        path.parent.mkdir(exist_ok=True)
        with path.open("a", buffering=1) as file, redirect_stdout(file), redirect_stderr(file):
            faulthandler.enable(file)
            log = _Log(file)
            where = f"node {socket.gethostname()} ({self.said.node}), process {os.getpid()}"
            log.write(f"{order.wanted.name}: {where}")
            try:
                if self.is_again:
                    self._listen(log, Heard(0, "", line="its worker died; it goes on in another"))
                with interrupted_by(self.interrupt):
                    self._make(log)
                log.write("done")
            except KeyboardInterrupt:
                log.write("stopped, all is saved")
                raise
            except BaseException:
                traceback.print_exc(file=file)
                raise
            finally:
                faulthandler.disable()

    def _make(self, log: "_Log") -> None:
        """Make the cell as soon as nobody else does: one whose node was lost may still be there."""
        order, ends = self.order, time.monotonic() + LOCKED
        teller = Teller(0, lambda heard: self._listen(log, heard))

        def report(event: Event) -> None:
            # a score is not saved on the way: nothing is lost
            if self.interrupt.asked and isinstance(event, Scoring):
                raise KeyboardInterrupt
            teller(event)

        while True:
            try:
                make(order.wanted, order.request, order.store, torch.device(order.device), report)
                return
            except BlockingIOError:
                if self.interrupt.asked:
                    raise KeyboardInterrupt from None
                if time.monotonic() > ends:
                    raise
                self._listen(log, Heard(0, "waiting for another process"))
                time.sleep(TRY)

    def _listen(self, log: "_Log", heard: Heard) -> None:
        log.hear(heard)
        if heard.line is not None:
            self.lines.append(heard.line)
        else:
            self.said = replace(self.said, heard=heard)


class _Log:
    """A file that a person reads, with a time on every line."""

    def __init__(self, file: TextIO) -> None:
        self.file, self.last = file, 0.0

    def hear(self, heard: Heard) -> None:
        """Write a line, or how far it is now and then."""
        if heard.line is not None:
            self.write(heard.line)
        elif time.monotonic() - self.last > LINE:
            self.last = time.monotonic()
            loss = "" if heard.loss is None else f", loss {heard.loss:.4f}"
            self.write(f"{heard.what}, step {heard.step:,} of {heard.steps:,}{loss}")

    def write(self, line: str) -> None:
        """Add a line."""
        self.file.write(f"{datetime.now(UTC).isoformat(timespec='seconds')} {line}\n")
