"""Time and memory of PRLSTM against `torch.nn.LSTM`, over the length of the sequence.

    python benchmarks/layer.py                   # the device at hand, lengths 64 to 65,536
    python benchmarks/layer.py --device cpu --lengths 64,1024 --long 100000

Prints a table, and appends one row of JSON per measurement to `--out`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from measure import Row, append_rows, environment, held_bytes, milliseconds, peak_bytes
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from prlstm import PRLSTM, State

RESULTS = Path(__file__).parent / "results" / "layer.jsonl"
FEATURES, CHUNK, LONG_CHUNK = 8, 512, 8192
# token by token, every token costs the same: longer sequences would only take longer
LONGEST_BY_TOKEN = 4096

Layer = PRLSTM | nn.LSTM


def whole(layer: Layer, x: Tensor, **how: Any) -> None:
    """Inference over the whole sequence at once."""
    with torch.no_grad():
        layer(x, **how)


def pieces(layer: Layer, x: Tensor, size: int) -> None:
    """Inference in pieces of `size` tokens, outputs dropped."""
    with torch.no_grad():
        state = None
        for piece in x.split(size, 1):
            _, state = layer(piece, state)


def step(layer: Layer, x: Tensor) -> None:
    """Forward and backward over all outputs."""
    layer.zero_grad()
    layer(x)[0].sum().backward()


def ways(ours: PRLSTM, lstm: nn.LSTM, x: Tensor) -> dict[str, Callable[[], None]]:
    """What is measured at one length."""
    measured = {
        "lstm": lambda: whole(lstm, x),
        "all": lambda: whole(ours, x),
        "last": lambda: whole(ours, x, output="last"),
        "stream": lambda: pieces(ours, x, CHUNK),
    }
    if x.shape[1] <= LONGEST_BY_TOKEN:
        measured["lstm token"] = lambda: pieces(lstm, x, 1)
        measured["token"] = lambda: pieces(ours, x, 1)
    measured["lstm train"] = lambda: step(lstm, x)
    measured["train"] = lambda: step(ours, x)
    return measured


def measure(call: Callable[[], None], device: torch.device) -> Row:
    """One measurement. Running out of memory is a result too, and so is cuDNN's refusal."""
    try:
        return milliseconds(call, device) | {"peak_bytes": peak_bytes(call, device)}
    except torch.OutOfMemoryError:
        failed = "out of memory"
    except RuntimeError as refused:
        if "cuDNN" not in str(refused):
            raise
        failed = str(refused).split(". ")[0]
    torch.cuda.empty_cache()
    return {"ms": None, "repeats": 0, "peak_bytes": None, "failed": failed}


def long_stream(layer: PRLSTM, tokens: int, batch: int, device: torch.device) -> list[Row]:
    """Memory held after each tenth of a long sequence in chunks, and the peak above it."""
    state: State | None = None
    seen = 0

    def tenth() -> None:
        nonlocal state, seen
        for _ in range(-(-tokens // LONG_CHUNK // 10)):
            _, state = layer(torch.randn(batch, LONG_CHUNK, FEATURES, device=device), state)
            seen += LONG_CHUNK

    rows = []
    with torch.no_grad():
        for _ in range(10):
            peak, held = peak_bytes(tenth, device), held_bytes(device)
            rows.append({"tokens": seen, "held_bytes": held, "peak_bytes": peak})
    return rows


def shown(rows: list[Row], title: str, cell: Callable[[Row], str]) -> Table:
    """Rows of one run as a table: a line for each length, a column for each way."""
    names = list(dict.fromkeys(row["what"] for row in rows))
    table = Table(title=title)
    for name in ("T", *names):
        table.add_column(name, justify="right")
    for length in dict.fromkeys(row["length"] for row in rows):
        cells = {row["what"]: cell(row) for row in rows if row["length"] == length}
        table.add_row(f"{length:,}", *(cells.get(name, "") for name in names))
    return table


def time_of(row: Row) -> str:
    """Milliseconds."""
    return "-" if row["ms"] is None else f"{row['ms']:,.{0 if row['ms'] >= 100 else 2}f}"


def memory_of(row: Row) -> str:
    """Peak memory in MB."""
    if row["peak_bytes"] is None:
        return "-"
    megabytes = row["peak_bytes"] / 2**20
    return f"{megabytes:,.{0 if megabytes >= 100 else 1}f}"


def main(
    device: str = "cuda" if torch.cuda.is_available() else "cpu",
    hidden: int = 256,
    batch: int = 1,
    lengths: Annotated[str, typer.Option(help="Comma-separated.")] = ",".join(
        str(2**k) for k in range(6, 17)
    ),
    long: Annotated[int, typer.Option(help="Tokens of the long stream; 0: none.")] = 1_000_000,
    out: Path = RESULTS,
) -> None:
    """Measure PRLSTM against torch.nn.LSTM."""
    console, target = Console(), torch.device(device)
    known = environment(target) | {"hidden_size": hidden, "batch": batch, "refine": 1}
    torch.manual_seed(0)
    ours = PRLSTM(FEATURES, hidden, batch_first=True, device=target)
    lstm = nn.LSTM(FEATURES, hidden, batch_first=True, device=target)
    rows: list[Row] = []
    for length in map(int, lengths.split(",")):
        x = torch.randn(batch, length, FEATURES, device=target)
        for what, call in ways(ours, lstm, x).items():
            rows.append({"what": what, "length": length} | measure(call, target))
            append_rows(out, [rows[-1] | known])
            console.print(f"T={length:<6} {what:<14} {time_of(rows[-1]):>10} ms", highlight=False)
    title = f"{known['device']}, batch {batch}, hidden {hidden}, streamed by {CHUNK}"
    console.print(shown(rows, f"Milliseconds: {title}", time_of))
    console.print(shown(rows, f"Peak memory, MB: {title}", memory_of))
    if long:
        table = Table(title=f"One sequence in chunks of {LONG_CHUNK:,}: memory in MB")
        for name in ("tokens", "held", "peak above it"):
            table.add_column(name, justify="right")
        for row in long_stream(ours, long, batch, target):
            append_rows(out, [{"what": "long stream", "chunk": LONG_CHUNK} | row | known])
            memory = (row["held_bytes"], row["peak_bytes"])
            shown_memory = ("?" if n is None else f"{n / 2**20:,.1f}" for n in memory)
            table.add_row(f"{row['tokens']:,}", *shown_memory)
        console.print(table)
    console.print(f"Rows appended to {out}")


if __name__ == "__main__":
    typer.run(main)
