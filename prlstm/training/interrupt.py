"""A polite end: the step that is being made is finished before anything stops."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class Interrupt:
    """Whether somebody asked for the end."""

    asked: bool = False


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
    interrupt = Interrupt()
    # only the main thread hears of signals
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

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
