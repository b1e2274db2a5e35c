"""The cells of a sweep as a file: a line for each setting and task."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from prlstm.files import write_whole
from prlstm.report.scores import Cell

HEADER = (
    "task", "model", "setting", "precision", "max", "ci_low", "ci_high", "median", "solved",
    "seeds", "steps_min", "steps_max", "floor",
)  # fmt: skip


def write_sweep(cells: Sequence[Cell], path: Path) -> Path:
    """Write CSV; shares are between 0 and 1."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(HEADER)
    for cell in cells:
        setting = " ".join(f"{name}={value}" for name, value in cell.column.setting.items())
        parts: list[object] = [cell.task, cell.column.model, setting, cell.precision]
        if cell.seeds:
            best = cell.best_seed
            parts += [f"{share:.6f}" for share in (cell.most, best.low, best.high, cell.median)]
            parts += [cell.succeeded, len(cell.seeds), *cell.steps]
        else:
            parts += [""] * 4 + [0, 0, "", ""]
        lines.writerow([*parts, f"{cell.floor:.4f}"])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.getvalue().encode())
    return path
