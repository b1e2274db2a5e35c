"""The rows that a page is made of, checked before they are shown."""

from collections.abc import Iterable, Mapping, Sequence
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

RUN = ("run", "task", "model", "setting", "seed", "step", "made_with")
CURVE = (*RUN, "seconds", "loss", "accuracy")
# what the rows of a file must have; a score that there is must be told in full
NEEDED: Mapping[str, Sequence[str]] = {
    SCORES: (*RUN, "weights"),
    CURVES: CURVE,
    FIGURE3: CURVE,
    SCALING: (
        "task", "label", "length", "batch", "hidden_size", "stop_ms", "batches", "ms_mean",
        "peak_bytes", "end", "made_with",
    ),
    GROWTH: ("model", "length", "ms", "hidden_size", "made_with"),
    GRADIENTS: ("model", "run", "length", "norms", "made_with"),
}  # fmt: skip
OF_A_SCORE = ("samples", "lengths", "score", "correct", "total")


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

    def count_of(self, names: Iterable[str]) -> int:
        """How many rows some files have."""
        return sum(len(self.files[name]) for name in names)


def read_material(results: Path) -> Material:
    """All rows; none of a file that is not there."""
    if not results.is_dir():
        raise ValueError(
            f"results={str(results)!r}: no such folder, expected one with rows, as "
            "`prlstm reproduce` makes"
        )
    return Material({name: _read(results / name, NEEDED[name]) for name in NEEDED})


def _read(path: Path, needed: Sequence[str]) -> list[Row]:
    rows = read_results(path)
    for number, row in enumerate(rows, 1):
        wanted = [*needed]
        if path.name == SCORES and not row.get("failed"):
            wanted += OF_A_SCORE
        missing = [name for name in wanted if name not in row]
        if missing:
            raise ValueError(f"{path}, line {number}: expected a row with {', '.join(missing)}")
        for name in ("made_with", "setting"):
            if name in wanted and not isinstance(row[name], dict):
                raise ValueError(
                    f"{path}, line {number}: {name}={row[name]!r:.40}, expected an object"
                )
    return rows
