"""Merges between columns, drawn as text."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

# A column is as wide as its widest text and one space, and never narrower than this.
NARROWEST = 3


class Drawn(NamedTuple):
    """A merge of the states of two columns, 1-based; the result goes on in the right one."""

    left: int
    right: int
    result: str = "●"


class Row(NamedTuple):
    """A line of merges, with a label before it."""

    label: str
    merges: Iterable[Drawn]


def draw_merges(
    columns: int,
    rows: Sequence[Row],
    width: int,
    heads: Sequence[str] | None = None,
    leaves: Sequence[str] | None = None,
) -> str:
    """Draw wires that run downwards, with what stands above each, and per row the merges.

    Above stand numbers unless there are `heads`; wires begin with dots unless there are `leaves`.
    Raises `ValueError` where `width` characters do not hold it.
    """
    # a tree may be far too wide to be listed
    _check_room(columns, len("leaf ") + NARROWEST * columns, width)
    heads = [str(column) for column in range(1, columns + 1)] if heads is None else heads
    leaves = ["o"] * columns if leaves is None else leaves
    lines = [(row.label, list(row.merges)) for row in rows]
    inner = [*leaves, *(one.result for _, merges in lines for one in merges)]
    # a dot may touch the line that leads to it, a word may not
    gap = 1 if max(map(len, inner)) == 1 else 2
    pitch = max(NARROWEST, max(map(len, [*heads, *inner])) + gap)
    margin = max(len(label) for label in ("leaf", *(label for label, _ in lines))) + 1
    _check_room(columns, margin + pitch * columns, width)
    text = [" " * margin + _words(heads, pitch), "leaf".ljust(margin) + _words(leaves, pitch)]
    text += [label.ljust(margin) + _row(columns, pitch, merges) for label, merges in lines]
    return "\n".join(text)


def _check_room(columns: int, needed: int, width: int) -> None:
    if needed > width:
        raise ValueError(f"width={width}: {columns} leaves need {needed} characters")


def _words(words: Sequence[str], pitch: int) -> str:
    return "".join(word.rjust(pitch) for word in words)


def _row(columns: int, pitch: int, merges: Iterable[Drawn]) -> str:
    cells = list("│".rjust(pitch) * columns)
    for left, right, result in merges:
        start, stop = left * pitch - 1, right * pitch - 1
        first = stop + 1 - len(result)
        for at in range(start + 1, first):
            cells[at] = "┼" if cells[at] == "│" else "─"
        if len(result) > 1:
            cells[first - 1] = " "
        cells[start] = "├"
        cells[first : stop + 1] = result
    return "".join(cells)
