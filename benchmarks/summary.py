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


def newest(rows: list[Row]) -> list[list[Row]]:
    """The rows of the last commit that was measured, for each device, batch and size."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if "length" in row:
            key = tuple(row[name] for name in ("device", "batch", "hidden_size", "threads"))
            groups.setdefault(key, []).append(row)
    same = ("commit", "torch")
    return [
        [row for row in group if all(row[name] == group[-1][name] for name in same)]
        for group in groups.values()
    ]


def cell(row: Row | None) -> str:
    """Time and peak memory."""
    if row is None:
        return ""
    if row["ms"] is None:
        return "out of memory" if row["failed"] == "out of memory" else "refused"
    ms = f"{row['ms']:,.0f}" if row["ms"] >= 100 else f"{row['ms']:.2g}"
    return f"{ms} ms, {row['peak_bytes'] / 2**20:,.0f} MB"


def tables(rows: list[Row]) -> str:
    """One table for each device, batch and size."""
    parts = []
    for group in newest(rows):
        known = group[-1]
        threads = "" if known["cuda"] else f" ({known['threads']} threads)"
        parts.append(
            f"**{known['device']}**{threads}, batch {known['batch']}, "
            f"hidden size {known['hidden_size']}, float32, "
            f"PyTorch {known['torch']}, commit {known['commit']}:\n"
        )
        parts.append("| T | " + " | ".join(COLUMNS.values()) + " |")
        parts.append("|--:" * (1 + len(COLUMNS)) + "|")
        found = {(row["length"], row["what"]): row for row in group}
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
