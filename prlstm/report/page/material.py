"""The rows that a page is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from prlstm.files import Row
from prlstm.report.rows import (
    CURVES,
    FIGURE3,
    GRADIENTS,
    GROWTH,
    SCALING,
    SCORES,
    read_results,
)

FILES = (SCORES, CURVES, FIGURE3, SCALING, GROWTH, GRADIENTS)


@dataclass(frozen=True)
class Material:
    """The rows of every file below the folder of results."""

    files: Mapping[str, Sequence[Row]]

    def __getitem__(self, name: str) -> Sequence[Row]:
        return self.files[name]

    @property
    def count(self) -> int:
        """How many rows there are."""
        return sum(map(len, self.files.values()))


NOTHING = Material(dict.fromkeys(FILES, ()))


def read_material(results: Path) -> Material:
    """All rows; none of a file that is not there."""
    if not results.is_dir():
        raise ValueError(
            f"results={str(results)!r}: no such folder, expected one with rows, as "
            "`prlstm reproduce` makes"
        )
    return Material({name: read_results(results / name) for name in FILES})
