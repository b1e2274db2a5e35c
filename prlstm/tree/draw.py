"""Merges between columns, drawn as text."""

from collections.abc import Iterable, Sequence

# A column is as wide as its number and one space, and never narrower than this.
NARROWEST = 3


def draw_merges(
    columns: int, rows: Sequence[tuple[str, Iterable[tuple[int, int]]]], width: int
) -> str:
    """Draw `columns` wires that run downwards, and per row the merges between them.

    A row is a label and its merges `(left, right)`, 1-based columns: the states of both
    columns meet, and the result goes on in the right one.
    """
    margin = max(len(label) for label in ("leaf", *(label for label, _ in rows))) + 1
    pitch = max(NARROWEST, len(str(columns)) + 1)
    needed = margin + pitch * columns
    if needed > width:
        raise ValueError(f"width={width}: {columns} leaves need {needed} characters")
    numbers = "".join(str(column).rjust(pitch) for column in range(1, columns + 1))
    lines = [" " * margin + numbers, "leaf".ljust(margin) + "o".rjust(pitch) * columns]
    for label, merges in rows:
        lines.append(label.ljust(margin) + _row(columns, pitch, merges))
    return "\n".join(lines)


def _row(columns: int, pitch: int, merges: Iterable[tuple[int, int]]) -> str:
    cells = list("│".rjust(pitch) * columns)
    for left, right in merges:
        start, stop = left * pitch - 1, right * pitch - 1
        for at in range(start + 1, stop):
            cells[at] = "┼" if cells[at] == "│" else "─"
        cells[start], cells[stop] = "├", "●"
    return "".join(cells)
