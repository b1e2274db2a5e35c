"""A polite end: the step that is being made is finished before anything stops."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class Interrupt:
    """Whether somebody asked for the end."""

    asked: bool = False


# what asks the code of a thread that no signal reaches
_ASKING: ContextVar[Interrupt | None] = ContextVar("interrupt", default=None)


@contextmanager
def interrupted_by(interrupt: Interrupt) -> Iterator[None]:
    """Let another thread, which holds `interrupt`, ask for the end of what this one does."""
    before = _ASKING.set(interrupt)
    try:
        yield
    finally:
        _ASKING.reset(before)


@contextmanager
def terminations_as_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def deferred_interrupts() -> Iterator[Interrupt]:
    """Note an interrupt (Ctrl-C, or SIGTERM) instead of raising it; a second one is raised."""
    # only the main thread hears of signals
    if threading.current_thread() is not threading.main_thread():
        yield _ASKING.get() or Interrupt()
        return
    interrupt = Interrupt()

    def note(number: int, frame: FrameType | None) -> None:
        if interrupt.asked:
            raise KeyboardInterrupt
        interrupt.asked = True

    before = {one: signal.signal(one, note) for one in SIGNALS}
    try:
        yield interrupt
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
