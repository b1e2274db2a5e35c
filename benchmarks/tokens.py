"""Words to logits where blocks of few tokens are looked up: inference, short, long and very long.

    python benchmarks/tokens.py                # all parts for the device at hand
    python benchmarks/tokens.py long score     # some of them

On a CUDA device: `parity_check`, batch 1024, at T = 2048 and at T = 1,048,576, tables built inside
the timed call, in bfloat16; and scores of 460 lengths x 512 words. On a CPU, in multiples of one
product of 1024 x 1024 matrices in the same run: a training step at 40 tokens, 64 words of 500, and
one sequence of 2048 random tokens to its last state beside `torch.nn.LSTM`. Logits and states are
compared with float64. Prints a line for each row, and appends the rows to `--out`.
"""

import copy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import torch
import typer
from kernels import captured, inference, relative_error
from measure import Row, append_rows, environment, held_bytes, milliseconds, peak_bytes
from torch import Tensor, nn

from prlstm import PRLSTM, models
from prlstm.evaluation import evaluate
from prlstm.training import Curriculum, RunConfig, Trainer
from prlstm.training.precision import computing

RESULTS = Path(__file__).parent / "results" / "tokens.jsonl"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
COMPARED = 2


def words_to_logits(batch: int, length: int, precision: str, *, capture: bool) -> list[Row]:
    """`parity_check`, hidden size 256: called from Python, and captured in a CUDA graph."""
    model = models.build("pr_lstm", "parity_check", seed=0, device=DEVICE).eval()
    # small integers: a thousand million tokens are 1 GB
    words = torch.randint(2, (batch, length), device=DEVICE, dtype=torch.uint8)

    def call() -> Tensor:
        with torch.no_grad(), computing(precision, DEVICE):
            logits: Tensor = model(words)
        return logits

    exact = copy.deepcopy(model).double()
    with torch.no_grad():
        want = exact(words[:COMPARED])
    error = relative_error(call()[:COMPARED], want)
    known = {
        "what": "words to logits", "task": "parity_check", "batch": batch, "length": length,
        "precision": precision, "hidden_size": 256, "error": error,
    }  # fmt: skip
    peak, held = peak_bytes(call, DEVICE), held_bytes(DEVICE)
    memory = {
        "peak_bytes": peak,
        "peak_bytes_in_all": None if None in (peak, held) else peak + held,
    }
    rows = [known | {"how": "called"} | milliseconds(call, DEVICE) | memory]
    if capture:
        replay = captured(call)
        again = {"how": "captured", "error": relative_error(replay()[:COMPARED], want)}
        rows.append(known | again | milliseconds(replay, DEVICE))
    return rows


def scores() -> list[Row]:
    """460 lengths x 512 words, the words drawn on the way."""
    rows = []
    for task in ("parity_check", "duplicate_string"):
        model = models.build("pr_lstm", task, seed=0, device=DEVICE)
        for precision in ("bfloat16", "float32"):
            with computing(precision, DEVICE):
                evaluate(model, [41, 499], 64)
                start = time.perf_counter()
                evaluate(model)
                taken = time.perf_counter() - start
            known = {"what": "score", "task": task, "precision": precision, "hidden_size": 256}
            rows.append(known | {"ms": round(1e3 * taken, 1), "how": "called"})
    return rows


def one_product() -> float:
    """Milliseconds of a product of two 1024 x 1024 matrices: what a CPU is measured by."""
    a, b = torch.randn(2, 1024, 1024)
    return float(milliseconds(lambda: a @ b, DEVICE)["ms"])


def on_a_cpu() -> list[Row]:
    """In multiples of one product, which is timed before and after each row."""
    found = []
    for measure in (_training_step, _logits, _last_state, _last_state_of_an_lstm):
        before, row, after = one_product(), measure(), one_product()
        product = (before + after) / 2
        found.append(row | {"product_ms": product, "products": round(row["ms"] / product, 3)})
    return found


def _training_step() -> Row:
    fixed = Curriculum(kind="fixed", longest=40)
    trainer = Trainer([RunConfig(task="parity_check", curriculum=fixed)])

    def call() -> None:
        trainer.update()
        trainer.read_metrics()

    known = {"what": "training step", "task": "parity_check", "batch": 128, "length": 40}
    known |= {"precision": "float32", "hidden_size": 256, "how": "called"}
    return known | milliseconds(call, DEVICE)


def _logits() -> Row:
    (row,) = words_to_logits(64, 500, "float32", capture=False)
    return row


ONE = {"batch": 1, "length": 2048, "precision": "float32", "hidden_size": 256, "how": "called"}


def _last_state() -> Row:
    layer, x = PRLSTM(8, 256, batch_first=True), torch.randn(1, 2048, 8)
    call = inference(layer, x, output="last")
    exact = copy.deepcopy(layer).double()
    error = relative_error(call(), inference(exact, x.double(), output="last")())
    return {"what": "last state", **ONE, "error": error} | milliseconds(call, DEVICE)


def _last_state_of_an_lstm() -> Row:
    lstm, x = nn.LSTM(8, 256, batch_first=True), torch.randn(1, 2048, 8)
    return {"what": "last state, nn.LSTM", **ONE} | milliseconds(inference(lstm, x), DEVICE)


PARTS: dict[str, Callable[[], list[Row]]] = {
    "short": lambda: words_to_logits(1024, 2048, "bfloat16", capture=True),
    "long": lambda: words_to_logits(1024, 1 << 20, "bfloat16", capture=False),
    "score": scores,
    "cpu": on_a_cpu,
}


def main(
    parts: Annotated[list[str] | None, typer.Argument(help=", ".join(PARTS))] = None,
    out: Path = RESULTS,
) -> None:
    """Measure what looking blocks up brings."""
    usual = [name for name in PARTS if (name == "cpu") == (DEVICE.type == "cpu")]
    for part in parts or usual:
        if part not in usual:
            raise typer.BadParameter(f"{part!r}: expected some of {', '.join(usual)}")
    for part in parts or usual:
        known = environment(DEVICE)
        for row in (known | row for row in PARTS[part]()):
            append_rows(out, [row])
            names = ("what", "task", "how", "batch", "length", "precision", "ms", "products")
            print(*(f"{name}={row[name]}" for name in names if name in row), flush=True)


if __name__ == "__main__":
    typer.run(main)
