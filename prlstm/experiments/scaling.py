"""Figure 4: time and peak memory of an answer over the length of the words, one row a point.

Every point is measured by itself, from fresh weights on, so that nothing of one is counted in
another. A curve goes up in length and ends with a marked row: where its mean is above the limit,
where memory runs out, or where a library refuses. Rows that are there are not measured again.
"""

import ctypes
import gc
import math
import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from prlstm import models
from prlstm.environment import environment
from prlstm.experiments.memory import ran_out_of_memory
from prlstm.experiments.scaling_curves import Curve
from prlstm.files import Row
from prlstm.report.rows import append_results, read_results
from prlstm.training.capture import CapturedSteps
from prlstm.training.precision import computing

TASK = "parity_check"
# batches that are timed however little time there is
LEAST = 3
# what errors say where a length is too much for a library
REFUSED = ("cudnn", "32-bit index", "invalid configuration argument")
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass(frozen=True, kw_only=True)
class Request:
    """How a point is measured: all that its numbers, or how sure they are, depend on.

    A point takes `batches` of them, or so many as fit in some `seconds` but three at least. A
    curve ends above a mean of `stop_ms`. `hidden_size` is that of models that have one.
    """

    batch: int = 1024
    batches: int = 100
    seconds: float | None = None
    stop_ms: float = 500.0
    hidden_size: int = 256

    def __post_init__(self) -> None:
        for name in ("batch", "batches", "hidden_size"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name}={value!r}: expected an integer >= 1")
        for name in ("seconds", "stop_ms"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"{name}={value!r}: expected a finite number > 0")

    def sizes(self, model: str) -> dict[str, Any]:
        """The hyper-parameters of a model: a Transformer keeps its own width."""
        return {"hidden_size": self.hidden_size} if model in ("pr_lstm", "lstm") else {}

    def is_about(self, row: Row) -> bool:
        """Whether a row has the settings that its numbers depend on."""
        settings = (row["task"], row["batch"], row["stop_ms"])
        width = self.sizes(row["model"]).get("hidden_size")
        return settings == (TASK, self.batch, self.stop_ms) and row["hidden_size"] == width

    def is_enough(self, row: Row) -> bool:
        """Whether a row rests on as many batches as are asked for."""
        if row["end"] in ("memory", "refused") or row["batches"] >= self.batches:
            return True
        # that the mean is above the limit may be certain sooner
        if row["batches"] * row["ms_mean"] >= self.batches * self.stop_ms:
            return True
        return bool(self.seconds and row["seconds"] and row["seconds"] >= self.seconds)

    def open_lengths(self, curve: Curve, lengths: Iterable[int], rows: Iterable[Row]) -> list[int]:
        """The lengths, going up, that rows of the same device do not answer yet."""
        known = [
            row
            for row in rows
            if row["curve"] == curve.name and self.is_about(row) and self.is_enough(row)
        ]
        there = {row["length"] for row in known}
        end = min((row["length"] for row in known if row["end"]), default=math.inf)
        return [length for length in sorted(set(lengths)) if length < end and length not in there]


@dataclass(frozen=True)
class Progress:
    """How far a point is, and its row once it is measured; `left` are points that may follow."""

    curve: Curve
    length: int
    batches: int
    row: Row | None
    done: int
    left: int


Report = Callable[[Progress], None]


def measure_curves(
    curves: Sequence[Curve],
    lengths: Iterable[int],
    request: Request,
    path: Path,
    device: torch.device,
    report: Report,
) -> None:
    """Add the rows to `path` that are not there yet."""
    made_with, asked = environment(device), list(lengths)
    known = [row for row in read_results(path) if row["made_with"]["device"] == made_with["device"]]
    todo = [(curve, request.open_lengths(curve, asked, known)) for curve in curves]
    done = 0
    for number, (curve, some) in enumerate(todo):
        later = sum(len(others) for _, others in todo[number + 1 :])
        if some:
            # at their first call libraries make themselves ready, which is not the model's memory
            measure(curve, 1, replace(request, batches=1), device, lambda _: None)
        for place, length in enumerate(some, 1):
            at = Progress(curve, length, 0, None, done, later + len(some) - place)
            row = measure(curve, length, request, device, partial(_tell, report, at))
            append_results(path, [{**row, "made_with": made_with}])
            done += 1
            # behind the end of a curve nothing is to come
            left = later if row["end"] else at.left
            report(replace(at, batches=row["batches"], row=row, done=done, left=left))
            if row["end"]:
                break


def _tell(report: Report, at: Progress, batches: int) -> None:
    report(replace(at, batches=batches))


def measure(
    curve: Curve, length: int, request: Request, device: torch.device, say: Callable[[int], None]
) -> Row:
    """One point: a row, whatever becomes of it. `say` is told how many batches are done."""
    known = {
        "task": TASK, "curve": curve.name, "label": curve.label, "model": curve.model,
        "length": length, "batch": request.batch,
        "hidden_size": request.sizes(curve.model).get("hidden_size"),
        "precision": curve.precision if device.type == "cuda" else "float32",
        "stop_ms": request.stop_ms, "seconds": request.seconds,
    }  # fmt: skip
    _release(device)
    before = _begin_peak(device)
    try:
        found = _timed(curve, length, request, device, say)
    except (MemoryError, RuntimeError) as failed:
        end = _mark(failed)
        if end is None:
            raise
        why = str(failed).partition("\n")[0][:200]
        return known | {
            "how": None, "batches": 0, "ms_mean": None, "ms_median": None, "ms_quartiles": None,
            "peak_bytes": None, "end": end, "note": why,
        }  # fmt: skip
    return known | found | {"peak_bytes": _peak(device, before)}


def _timed(
    curve: Curve, length: int, request: Request, device: torch.device, say: Callable[[int], None]
) -> Row:
    model = models.build(curve.model, TASK, seed=0, device=device, **request.sizes(curve.model))
    answer, is_cuda = curve.program(model.eval()), device.type == "cuda"
    precision = curve.precision if is_cuda else "float32"
    # small integers: a thousand million tokens are 1 GB
    words = torch.empty(request.batch, length, dtype=torch.uint8, device=device)
    numbers = torch.Generator(device).manual_seed(0)

    def call(_: int) -> Tensor:
        with torch.no_grad(), computing(precision, device):
            return answer(words)

    notes: list[str] = []
    captured = CapturedSteps(device, notes.append) if curve.capture and is_cuda else None
    run = call if captured is None else partial(captured, call)
    taken: list[float] = []
    # two batches warm up: the first may be captured, the second is the first replay
    for number in range(-2, request.batches):
        words.random_(0, 2, generator=numbers)
        _wait(device)
        start = time.perf_counter()
        run(length)
        _wait(device)
        if number >= 0:
            taken.append(1e3 * (time.perf_counter() - start))
            say(len(taken))
            if _is_over(taken, request):
                break
    mean = float(np.mean(taken))
    low, middle, high = np.percentile(taken, (25, 50, 75)).tolist()
    return {
        "how": "captured" if captured is not None and captured.graphs else "called",
        "batches": len(taken),
        "ms_mean": round(mean, 4),
        "ms_median": round(middle, 4),
        "ms_quartiles": [round(low, 4), round(high, 4)],
        "end": "time" if mean >= request.stop_ms else "",
        "note": notes[0] if notes else "",
    }


def _is_over(taken: Sequence[float], request: Request) -> bool:
    """Whether time is up, or the mean of all batches is above the limit whatever is to come."""
    spent = sum(taken)
    if request.seconds is not None and len(taken) >= LEAST and spent >= 1e3 * request.seconds:
        return True
    return spent >= request.batches * request.stop_ms


def _mark(failed: Exception) -> str | None:
    """How a curve ends with an error; None where the error is another one."""
    if ran_out_of_memory(failed):
        return "memory"
    return "refused" if any(words in str(failed).lower() for words in REFUSED) else None


def _release(device: torch.device) -> None:
    """Give back what earlier points left: a graph, what libraries hold, the cache."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()


def _begin_peak(device: torch.device) -> int | None:
    """Set the peak back, and tell what is not to be counted: on a CPU, the interpreter."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return 0
    if not os.access(CLEAR, os.W_OK):
        return None
    # what was freed counts as free only once the C library has given it back
    ctypes.CDLL(None).malloc_trim(0)
    # "5" resets the peak that the kernel keeps
    CLEAR.write_text("5")
    return _status("VmRSS")


def _peak(device: torch.device, before: int | None) -> int | None:
    """The most memory since then: weights, words, and all that is between them and the answers."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    return None if before is None else _status("VmHWM") - before


def _status(field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB", STATUS.read_text(), re.MULTILINE)
    assert found is not None, f"{STATUS} has no {field}"
    return int(found[1]) * 1024


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
