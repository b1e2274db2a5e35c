"""A grid of settings in one file: every combination is a run for each seed.

task = ["parity_check", "cycle_navigation"]   # every option takes one value or several
hidden_size = [32, 64]
learning_rate = [1e-3, 3e-3]
seeds = 3                                     # so many; "3:5" or [3, 7] are those
steps = 1000
lengths = ["41:100", 200, "300:500"]          # of the words that it is scored on
samples = 64
"""

import itertools
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from prlstm import models
from prlstm.experiments.runs import Wanted
from prlstm.report.columns import PRECISION, Column
from prlstm.tasks.floors import SCORED
from prlstm.training import Request, RunConfig
from prlstm.training.config import SHORT

# of the whole file, with what they are without a line
WHOLE: Mapping[str, Any] = {"seeds": 1, "steps": 100_000, "samples": 512, "lengths": None}
FULL_NAMES = {short: name for name, short in SHORT.items()}
MOST_CELLS = MOST_SEEDS = 10_000

EXPECTED_SEEDS = (
    f'expected how many seeds, from 1 to {MOST_SEEDS:,}, or which, as in [3, 4] or "3:5"'
)


@dataclass(frozen=True)
class Sweep:
    """The cells of a grid, how far each is trained, and on which lengths it is scored."""

    cells: Sequence[Wanted]
    request: Request
    lengths: tuple[int, ...]


def read_sweep(path: Path) -> Sweep:
    """The grid that a file describes, or an error that names file, line of it and expectation."""
    try:
        given = tomllib.loads(path.read_text())
    except UnicodeDecodeError:
        raise ValueError(f"{path}: expected a text file") from None
    except tomllib.TOMLDecodeError as wrong:
        raise ValueError(f"{path}: not TOML, where texts stand in quotes ({wrong})") from None
    try:
        return _read(given)
    except ValueError as wrong:
        raise ValueError(f"{path}: {wrong}") from None


def _read(given: Mapping[str, Any]) -> Sweep:
    if "task" not in given:
        raise ValueError('expected a line like task = "parity_check"')
    whole = {**WHOLE, **{name: given[name] for name in WHOLE if name in given}}
    grid = {name: _values(name, value) for name, value in given.items() if name not in WHOLE}
    grid.setdefault("model", ["pr_lstm"])
    seeds = _seeds(whole["seeds"])
    many = math.prod(map(len, grid.values()))
    if many > MOST_CELLS:
        raise ValueError(f"{many:,} combinations: expected at most {MOST_CELLS:,}")
    configs = _once(
        _config(dict(zip(grid, values, strict=True)))
        for values in itertools.product(*grid.values())
    )
    cells = [
        _cell(config, told, seeds)
        for config, told in zip(configs, _told(configs, grid), strict=True)
    ]
    request = Request(steps=whole["steps"], samples=whole["samples"])
    return Sweep(cells, request, read_lengths(whole["lengths"]))


def _values(name: str, value: Any) -> list[Any]:
    """One value, or several; sizes as [64, 64] are one value of a model that has such."""
    if isinstance(value, dict):
        raise ValueError(f"[{name}]: expected lines like name = value, and no tables")
    values = value if isinstance(value, list) else [value]
    if not values:
        raise ValueError(f"{name} = []: expected at least one value")
    return values


def _config(one: Mapping[str, Any]) -> RunConfig:
    """The run of one combination, with the first seed."""
    task, model = str(one["task"]), str(one["model"])
    parts = {name.partition(".")[0] for name in SHORT}
    plain = {field.name for field in fields(RunConfig)} - {"task", "model", "seed"} - parts
    options = {field.name for field in fields(models.kind(model).options)}
    known = plain | options | FULL_NAMES.keys()
    setting = {name: value for name, value in one.items() if name not in ("task", "model")}
    for name in setting:
        if name not in known - {"hyper_parameters"}:
            raise ValueError(
                f"{name}: no option of {model}; expected some of {', '.join(sorted(known))}"
            )
    own = {FULL_NAMES.get(name, name): value for name, value in setting.items()}
    try:
        return RunConfig.from_own(task, model, own)
    except TypeError as wrong:
        given = ", ".join(f"{name} = {value!r:.40}" for name, value in setting.items())
        raise ValueError(f"{given}: expected numbers where numbers belong ({wrong})") from None


def _once(configs: Iterable[RunConfig]) -> list[RunConfig]:
    """Each run once: values that are equal, as 1 and 1.0, make the same."""
    found: dict[str, RunConfig] = {}
    for config in configs:
        if found.setdefault(config.name, config) != config:
            other = found[config.name].own()
            raise ValueError(f"{other} and {config.own()}: expected runs of different names")
    return list(found.values())


def _told(configs: Sequence[RunConfig], grid: Iterable[str]) -> list[dict[str, Any]]:
    """For each run its settings that are not the same in all, also where they are as usual."""
    every = [config.settings() for config in configs]
    names = {name: FULL_NAMES.get(name, name) for name in grid if name not in ("task", "model")}
    varied = {
        name: full for name, full in names.items() if len({str(one[full]) for one in every}) > 1
    }
    return [{name: one[full] for name, full in varied.items()} for one in every]


def _cell(config: RunConfig, told: Mapping[str, Any], seeds: tuple[int, ...]) -> Wanted:
    """The cell of a run, called by what tells it from the others."""
    title = ", ".join([config.model, *(f"{name} {value}" for name, value in told.items())])
    own = {name: value for name, value in config.own().items() if name != PRECISION}
    column = Column(config.name.partition("-")[2], title, config.model, own, config.precision)
    return Wanted(config.task, column, seeds, config.precision)


def _seeds(given: Any) -> tuple[int, ...]:
    """So many, or those."""
    if type(given) is int:
        if not 1 <= given <= MOST_SEEDS:
            raise ValueError(f"seeds = {given}: {EXPECTED_SEEDS}")
        return tuple(range(given))
    seeds = tuple(_numbers("seeds", given, 0))
    if len(seeds) > MOST_SEEDS:
        raise ValueError(f"seeds = {given!r:.60}: {EXPECTED_SEEDS}")
    return seeds


def read_lengths(given: Any) -> tuple[int, ...]:
    """Lengths as numbers and ranges, one or a list; those of the protocol by default.

    >>> read_lengths(["3:5", 9])
    (3, 4, 5, 9)
    """
    return tuple(SCORED) if given is None else tuple(_numbers("lengths", given, 1))


def _numbers(name: str, given: Any, least: int) -> list[int]:
    numbers: set[int] = set()
    if given == []:
        raise ValueError(f"{name} = []: expected at least one number")
    for part in given if isinstance(given, list) else [given]:
        found = re.fullmatch(r"\s*([0-9]{1,18})\s*(?::\s*([0-9]{1,18})\s*)?", str(part))
        if found is None:
            raise ValueError(
                f'{name} = {given!r:.60}: expected numbers and ranges as in [5, "41:500"]'
            )
        low, high = int(found[1]), int(found[2] or found[1])
        if not least <= low <= high <= 1_000_000:
            raise ValueError(
                f"{name} = {given!r:.60}: expected {least} <= first <= last <= 1,000,000"
            )
        numbers |= set(range(low, high + 1))
    return sorted(numbers)
