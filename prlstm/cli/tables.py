"""Tables on a terminal."""

import math
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from prlstm.evaluation.score import SUCCESS
from prlstm.report import numbers
from prlstm.report.paper import published
from prlstm.report.score_table import SOLVED_BY_FLOOR
from prlstm.training.results import Result, summary


def plain_table(left: Sequence[str], right: Sequence[str]) -> Table:
    """A table without lines: columns of text to the left, of numbers to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name in left:
        table.add_column(name, no_wrap=True)
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def percent(share: float | None) -> str:
    """A share as a person reads it, rounded down: what is not all is not 100 %."""
    if share is None or math.isnan(share):
        return "-"
    return f"{numbers.percent(share)} %"


def duration(seconds: float) -> str:
    """Hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _words(results: Sequence[Result]) -> str:
    """On how many words of a length the scores rest."""
    counts = sorted({one.scores["last"].samples for one in results if "last" in one.scores})
    return " or ".join(map(str, counts))


# what the columns of scores other than the last weights' are called
OTHERS = {"best": "best (validated)", "average": "average"}


def print_results(console: Console, results: Sequence[Result]) -> None:
    """One line per seed and the summary, beside the paper's number and the floor."""
    first = results[0]
    others = [name for name in OTHERS if any(name in one.scores for one in results)]
    columns = ["steps", "loss", "accuracy", "score", *(OTHERS[name] for name in others), ""]
    table = plain_table(["seed"], columns)
    # guessing by position alone would pass
    is_floor_enough = first.floor >= SUCCESS
    solved = f"solved {SOLVED_BY_FLOOR}" if is_floor_enough else "solved"
    for one in results:
        scores = [percent(one.score)]
        for name in others:
            score = one.scores.get(name)
            at = "" if score is None or name != "best" else f" at {score.step:,}"
            scores.append(percent(None if score is None else score.value) + at)
        told = "" if one.score is None else solved if one.score >= SUCCESS else "not solved"
        numbers = (f"{one.step:,}", f"{one.loss:.4f}", percent(one.accuracy))
        table.add_row(str(one.config.seed), *numbers, *scores, told)
    console.print(table)
    scored = [one.score for one in results if one.score is not None]
    if scored:
        over = summary(scored)
        console.print(
            f"\nscore: max {percent(over.most)}, median {percent(over.median)}, "
            f"{over.succeeded} of {over.seeds} succeeded (>= 90 %); {_words(results)} words of "
            "each length 41 to 500",
            highlight=False,
        )
    config = first.config
    paper = published(config.task, config.model, config.hyper_parameters)
    beside = "none" if paper is None else f"{percent(paper)} (the best of 10 seeds)"
    passes = f" ({SOLVED_BY_FLOOR}: that alone passes)" if is_floor_enough else ""
    console.print(f"paper: {beside}    guessing: {percent(first.floor)}{passes}", highlight=False)
