"""How long a cell will take, as rows of cells like it tell."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from prlstm.experiments.runs import Store, Wanted
from prlstm.files import Row
from prlstm.training import Request

# settings of this part change what is learned, and no time
SCHEDULE = "schedule."


@dataclass(frozen=True)
class Left:
    """A cell that is not answered: how many seeds, from which step on, and seconds if known."""

    number: int
    seeds: int
    step: int
    seconds: float | None


def left(
    cells: Iterable[Wanted], request: Request, store: Store, rows: Iterable[Row], is_cuda: bool
) -> list[Left]:
    """What is left to make, in order; `rows` are scores, or curves, of anything on any device."""
    kinds = _costs(rows, is_cuda)
    found = []
    for number, cell in enumerate(cells):
        seeds = len(store.missing(cell, request))
        if not seeds:
            continue
        step = min(store.made(cell), request.steps)
        config = cell.configs[0]
        known = kinds.get(_kind(config.task, config.model, config.own()))
        seconds = None
        if known is not None:
            # as much for each seed as in the stack that is most alike
            alike = min(known, key=lambda size: abs(size - seeds))
            each, score = known[alike]
            seconds = (each * (request.steps - step) + score) * seeds / alike
        found.append(Left(number, seeds, step, seconds))
    return found


def _costs(rows: Iterable[Row], is_cuda: bool) -> dict[Any, dict[int, tuple[float, float]]]:
    """Seconds of a step and of a score, by kind of run and by seeds that were made together."""
    stacks: dict[tuple[Any, ...], set[int]] = {}
    for row in rows:
        is_alike = (row["made_with"]["cuda"] is not None) == is_cuda
        # a curve ends with the last weights too
        if row.get("weights", "last") == "last" and is_alike:
            kind = _kind(row["task"], row["model"], row["setting"])
            # seeds of one stack end at one time
            stack = (kind, _end(row["step"]), _end(row["seconds"]), row.get("score_seconds", 0.0))
            stacks.setdefault(stack, set()).add(row["seed"])
    found: dict[Any, dict[int, tuple[float, float]]] = {}
    # of several the longest run counts: its beginning weighs least
    for (kind, step, seconds, score), seeds in sorted(stacks.items(), key=lambda one: one[0][1]):
        found.setdefault(kind, {})[len(seeds)] = (seconds / step, score)
    return found


def _end(known: Any) -> Any:
    """A number of a score, or the last one of a curve."""
    return known[-1] if isinstance(known, list) else known


def _kind(task: str, model: str, setting: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a step's time depends on."""
    some = sorted((n, repr(v)) for n, v in setting.items() if not n.startswith(SCHEDULE))
    return task, model, tuple(some)
