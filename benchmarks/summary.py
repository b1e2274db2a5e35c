"""The speed table of the README, made from the committed rows: `make results`."""

import json
import re
from pathlib import Path

from measure import Row

ROOT = Path(__file__).parent.parent
ROWS, README = ROOT / "benchmarks" / "results" / "layer.jsonl", ROOT / "README.md"
MARKED = re.compile(r"(<!-- speed -->\n).*?(<!-- /speed -->)", re.DOTALL)
LENGTHS = (64, 1024, 16_384, 65_536)
COLUMNS = {
    "lstm": "`nn.LSTM`",
    "all": "all states",
    "last": "last state",
    "lstm train": "`nn.LSTM` training",
    "train": "training",
}


def newest(rows: list[Row]) -> dict[tuple[str, int], dict[tuple[int, str], Row]]:
    """The last row of each measurement, by device and batch, then by length and way."""
    found: dict[tuple[str, int], dict[tuple[int, str], Row]] = {}
    for row in rows:
        if "length" in row:
            group = found.setdefault((row["device"], row["batch"]), {})
            group[row["length"], row["what"]] = row
    return found


def cell(row: Row | None) -> str:
    """Time and peak memory."""
    if row is None:
        return ""
    if row["ms"] is None:
        return "out of memory" if row["failed"] == "out of memory" else "refused"
    ms = f"{row['ms']:,.0f}" if row["ms"] >= 100 else f"{row['ms']:.3g}"
    return f"{ms} ms, {row['peak_bytes'] / 2**20:,.0f} MB"


def tables(rows: list[Row]) -> str:
    """One table for each device and batch size."""
    parts = []
    for (device, batch), found in sorted(newest(rows).items(), reverse=True):
        known = next(iter(found.values()))
        parts.append(
            f"**{device}**, batch {batch}, hidden size {known['hidden_size']}, float32, "
            f"PyTorch {known['torch']}, commit {known['commit']}:\n"
        )
        parts.append("| T | " + " | ".join(COLUMNS.values()) + " |")
        parts.append("|--:" * (1 + len(COLUMNS)) + "|")
        for length in LENGTHS:
            cells = (cell(found.get((length, what))) for what in COLUMNS)
            parts.append(f"| {length:,} | " + " | ".join(cells) + " |")
        parts.append("")
    return "\n".join(parts)


def updated(readme: str, rows: list[Row]) -> str:
    """The README with its tables made anew."""
    return MARKED.sub(lambda found: found[1] + tables(rows) + found[2], readme)


def read_rows() -> list[Row]:
    """All rows of the layer benchmark."""
    return [json.loads(line) for line in ROWS.read_text().splitlines()]


if __name__ == "__main__":
    README.write_text(updated(README.read_text(), read_rows()))
    print(f"{README}: speed tables made from {ROWS}")
