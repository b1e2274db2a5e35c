"""How time and memory are measured, and what is written beside every number."""

import ctypes
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch

from prlstm import files
from prlstm.environment import environment
from prlstm.files import Row

__all__ = ["Row", "append_rows", "environment", "held_bytes", "milliseconds", "peak_bytes"]

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def milliseconds(call: Callable[[], object], device: torch.device) -> Row:
    """The median time of a call, its quartiles, and how many calls were timed.

    The first call, and all in the first quarter of a second, warm up. The others are repeated
    until two seconds are over, three times at least, a hundred times at most.
    """
    _repeat(call, device, seconds=0.25, least=1)
    taken = _repeat(call, device, seconds=2.0, least=3)
    low, middle, high = statistics.quantiles(taken, n=4, method="inclusive")
    return {
        "ms": round(middle, 4),
        "ms_quartiles": [round(low, 4), round(high, 4)],
        "repeats": len(taken),
    }


def _repeat(
    call: Callable[[], object], device: torch.device, seconds: float, least: int, most: int = 100
) -> list[float]:
    taken: list[float] = []
    while len(taken) < least or (sum(taken) < 1e3 * seconds and len(taken) < most):
        _wait(device)
        start = time.perf_counter()
        call()
        _wait(device)
        taken.append(1e3 * (time.perf_counter() - start))
    return taken


def peak_bytes(call: Callable[[], object], device: torch.device) -> int | None:
    """How far memory rises above where it stands while `call` runs.

    On CUDA the allocator's count; on Linux the process's resident set; elsewhere unknown.
    """
    _wait(device)
    before = held_bytes(device)
    if before is None:
        return None
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        call()
        _wait(device)
        return int(torch.cuda.max_memory_allocated(device)) - before
    # "5" resets the peak that the kernel keeps
    CLEAR.write_text("5")
    call()
    return _status("VmHWM") - before


def held_bytes(device: torch.device) -> int | None:
    """Memory in use now: the allocator's count on CUDA, the resident set on Linux."""
    if device.type == "cuda":
        return int(torch.cuda.memory_allocated(device))
    if not CLEAR.exists():
        return None
    # what was freed counts as free only once the C library has given it back
    ctypes.CDLL(None).malloc_trim(0)
    return _status("VmRSS")


def append_rows(path: Path, rows: list[Row]) -> None:
    """Add rows to a file of JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files.append_rows(path, rows)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _status(field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB", STATUS.read_text(), re.MULTILINE)
    assert found is not None, f"{STATUS} has no {field}"
    return int(found.group(1)) * 1024
