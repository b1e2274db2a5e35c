"""A Ray cluster that is there, or one on this machine that ends with the command."""

import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any, TextIO, cast

import ray

# where the units of a command are looked up by name
NAMESPACE = "prlstm"
# seconds: for an open port, for a cluster to answer, and between two looks whether it is there
REACHED, ANSWERED, LOOK = 5.0, 25.0, 10.0
# Ray sends no reports of use, and says nothing of accelerators that a task does not ask for
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
# what a process of its own asks, since Ray's own call waits for minutes and cannot be ended
ASK = """
import sys, ray
try:
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level="CRITICAL")
except Exception as failed:
    sys.exit(str(failed))
print(ray.get_runtime_context().gcs_address)
"""

# the thread in which Ray prints what happens to nodes; `log_to_driver` does not turn it off
PRINTING = "ray_listen_error_messages"


@contextmanager
def connected(address: str | None) -> Iterator[str]:
    """Be a driver of the cluster at an address, or of a new one here; how a person calls it."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    where = "local" if address is None else find(address)
    try:
        ray.init(
            # a cluster that Ray finds by itself is shown the token of this machine, others are not
            address=address if address == "auto" else where,
            namespace=NAMESPACE,
            log_to_driver=False,
            logging_level=logging.ERROR,
            include_dashboard=False if address is None else None,
        )
    except (ConnectionError, RuntimeError, ValueError) as failed:
        raise ConnectionError(f"--address {address}: {failed}") from None
    is_over = threading.Event()
    if address is not None:
        threading.Thread(target=_watch, args=(where, is_over), daemon=True).start()
    try:
        with redirect_stdout(cast(TextIO, _WithoutRay(sys.stdout))):
            yield "a Ray cluster here" if address is None else f"the Ray cluster at {where}"
    finally:
        is_over.set()
        # what Ray has kept back it prints at last
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            ray.shutdown()


def _watch(address: str, is_over: threading.Event) -> None:
    """Say what to do when the head is gone: after a minute Ray ends this process, which cannot."""
    while not is_over.wait(LOOK):
        try:
            _knock(address)
        except ConnectionError:
            sys.stderr.write(
                f"The Ray cluster at {address} does not answer. If it does not within a minute, "
                "this command ends. Start the cluster again and type the same command: it goes on "
                "from what is saved.\n"
            )
            return


class _WithoutRay:
    """A stream without what Ray prints: units tell by themselves that they were begun again."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write, unless it is Ray that does."""
        if threading.current_thread().name == PRINTING:
            return len(text)
        return self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def find(address: str) -> str:
    """The address of a cluster that answers, as host and port; or an error within seconds."""
    if address != "auto":
        _knock(address)
    try:
        asked = subprocess.run(
            [sys.executable, "-c", ASK, address],
            capture_output=True,
            text=True,
            timeout=ANSWERED,
        )
    except subprocess.TimeoutExpired:
        raise ConnectionError(
            f"--address {address}: no Ray cluster answered within {ANSWERED:.0f} s"
        ) from None
    if asked.returncode:
        said = asked.stderr.strip().splitlines() or ["it ended without a word"]
        raise ConnectionError(f"--address {address}: {said[-1]}")
    return asked.stdout.split()[-1]


def _knock(address: str) -> None:
    """Find out whether anything listens there."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"--address {address!r:.60}: expected auto, or host:port as in head:6379")
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACHED).close()
    except OSError as failed:
        raise ConnectionError(
            f"--address {address}: nothing answers there ({failed.strerror or failed}); expected "
            "the address that `ray start --head` printed"
        ) from None
