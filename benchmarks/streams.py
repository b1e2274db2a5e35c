"""Many streams at positions of their own, one token each at every step: a server's work.

    python benchmarks/streams.py

1024 streams at random positions, hidden size 256, one refinement. On a CUDA device in bfloat16, on
a CPU in float32. A step is `called`, and waited for; or many are, `back to back`; or, on a CUDA
device, the graph of one is `replayed` alone, without what the host does. Outputs
of some streams are compared with the layer in float64, over their whole sequences, in the same run.
Prints a line for each row, and appends the rows to `--out`.
"""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from kernels import relative_error
from measure import Row, append_rows, environment, milliseconds
from torch import Tensor

from prlstm import PRLSTM, State, Streams
from prlstm.kernels.streams import KernelSlots
from prlstm.training.precision import computing

RESULTS = Path(__file__).parent / "results" / "streams.jsonl"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
ROWS, FEATURES, HIDDEN = 1024, 8, 256
# the furthest position at first; steps that are compared; streams that are; steps in one go
FURTHEST = {"cuda": 4096, "cpu": 48}
COMPARED_STEPS, COMPARED, TOGETHER = 8, 4, {"cuda": 50, "cpu": 2}


def streams_at_random(layer: PRLSTM, rows: int, furthest: int) -> tuple[Streams, float]:
    """Streams that have been fed until they stand anywhere, and how wrong their outputs are."""
    streams, steps = Streams(layer, rows), furthest + COMPARED_STEPS
    positions = np.random.default_rng(0).integers(0, furthest, rows)
    x = torch.randn(steps, rows, FEATURES, device=DEVICE)
    for n in range(furthest):
        streams.step(x[n], n >= furthest - positions)
    outs = [streams.step(x[n]) for n in range(furthest, steps)]
    exact = copy.deepcopy(layer).double()
    exact.backend = "eager"
    got, want = [], []
    for row in range(min(rows, COMPARED)):
        with torch.no_grad(), computing("float64", DEVICE):
            out, _ = exact(x[furthest - positions[row] :, row].double())
        want.append(out[-COMPARED_STEPS:])
        got.append(torch.stack([h[row] for h in outs]))
    return streams, relative_error(torch.stack(got), torch.stack(want))


def fed(streams: Streams, layer: PRLSTM) -> dict[tuple[str, str], tuple[Callable[[], object], int]]:
    """What is measured, by what and how; and the steps that it makes."""
    rows, together = streams.rows, TOGETHER[DEVICE.type]
    x = torch.randn(rows, FEATURES, device=DEVICE)
    half = np.arange(rows) % 2 == 0
    state = streams.state()

    def many(active: "np.typing.NDArray[np.bool_] | None" = None) -> None:
        for _ in range(together):
            streams.step(x, active)

    @torch.no_grad()
    def value() -> tuple[Tensor, State]:
        return layer.step(x, state)

    calls: dict[tuple[str, str], tuple[Callable[[], object], int]] = {
        ("streams", "called"): (lambda: streams.step(x), 1),
        ("streams", "back to back"): (many, together),
        ("streams, half of them", "back to back"): (lambda: many(half), together),
        ("layer.step", "called"): (value, 1),
    }
    slots = streams._slots
    if isinstance(slots, KernelSlots) and slots._graph is not None:
        calls["streams", "replayed"] = (slots._graph.replay, 1)
    return calls


def measured(rows: int, furthest: int) -> list[Row]:
    """One row for each way."""
    precision = "bfloat16" if DEVICE.type == "cuda" else "float32"
    layer = PRLSTM(FEATURES, HIDDEN, device=DEVICE)
    made = []
    with computing(precision, DEVICE):
        streams, error = streams_at_random(layer, rows, furthest)
        known = {
            "streams": rows, "furthest": furthest, "precision": precision, "hidden_size": HIDDEN,
            "refine": 1, "error": error,
        }  # fmt: skip
        # the graph first: growing makes another one
        for (what, how), (call, steps) in reversed(fed(streams, layer).items()):
            taken = milliseconds(call, DEVICE)
            taken["ms"] = round(taken["ms"] / steps, 4)
            taken["ms_quartiles"] = [round(ms / steps, 4) for ms in taken["ms_quartiles"]]
            fed_rows = rows // 2 if "half" in what else rows
            row = {"what": what, "how": how, **known, **taken, "steps_together": steps}
            made.append(row | {"tokens_per_s": round(1e3 * fed_rows / taken["ms"])})
    return made


def main(
    out: Path = RESULTS,
    rows: Annotated[int, typer.Option(help="How many streams.")] = ROWS,
    furthest: Annotated[int | None, typer.Option(help="The furthest position at first.")] = None,
) -> None:
    """Measure steps of many streams."""
    torch.manual_seed(torch.seed())
    found = measured(rows, furthest or FURTHEST[DEVICE.type])
    known = environment(DEVICE)
    for row in (known | row for row in found):
        append_rows(out, [row])
        names = ("what", "how", "streams", "precision", "ms", "tokens_per_s")
        print(*(f"{name}={row[name]}" for name in names), f"error={row['error']:.1e}", flush=True)


if __name__ == "__main__":
    typer.run(main)
