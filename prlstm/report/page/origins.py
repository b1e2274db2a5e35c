"""Where rows were made: hardware, versions and commit, each numbered, to be referred to."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prlstm.files import Row
from prlstm.report.scores import Cell

NAMES = ("device", "threads", "python", "torch", "cuda", "prlstm", "commit")
UNKNOWN = "not known"


@dataclass
class Origin:
    """One of them, on which days it was at work, and how many rows of which file it made."""

    number: int
    made_with: Mapping[str, Any]
    dates: set[str] = field(default_factory=set)
    rows: dict[str, int] = field(default_factory=dict)

    def said(self, name: str) -> str:
        """A part of it: on a CPU there is no CUDA; what nobody knew is said to be that."""
        value = self.made_with.get(name)
        if value is None:
            return "none" if name == "cuda" else UNKNOWN
        return str(value)

    @property
    def days(self) -> str:
        """From the first day to the last."""
        if not self.dates:
            return UNKNOWN
        return " to ".join(dict.fromkeys((min(self.dates), max(self.dates))))


class Origins:
    """All origins of some rows, by file."""

    def __init__(self, files: Mapping[str, Iterable[Row]]) -> None:
        self._known: dict[tuple[str, ...], Origin] = {}
        for name, rows in files.items():
            for row in rows:
                made_with = row["made_with"]
                key = _key(made_with)
                one = self._known.setdefault(key, Origin(len(self._known) + 1, made_with))
                one.rows[name] = one.rows.get(name, 0) + 1
                if made_with.get("date") is not None:
                    one.dates.add(str(made_with["date"]))

    @property
    def all(self) -> Sequence[Origin]:
        """In the order in which they come."""
        return list(self._known.values())

    def number(self, made_with: Mapping[str, Any]) -> int:
        """The number of what a row was made with."""
        return self._known[_key(made_with)].number

    def numbers(self, rows: Iterable[Row]) -> list[int]:
        """Those of some rows, in order."""
        return sorted({self.number(row["made_with"]) for row in rows})

    def of_cells(self, cells: Iterable[Cell]) -> list[int]:
        """Those of the scores in some cells."""
        return sorted({self.number(made) for cell in cells for made in cell.made_with})


def _key(made_with: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(made_with.get(name)) for name in NAMES)
