"""What a command would do, as a list."""

from collections.abc import Sequence

from rich.console import Console

from prlstm.cli.engine import Engine
from prlstm.cli.reproduce.options import OUT
from prlstm.cli.runs import WIDTH
from prlstm.cli.tables import duration, plain_table
from prlstm.experiments.expected import left
from prlstm.experiments.runs import Store, Wanted
from prlstm.report.rows import read_results
from prlstm.training import Request


def print_units(
    console: Console,
    cells: Sequence[Wanted],
    request: Request,
    store: Store,
    maker: Engine,
    shorter: str,
) -> None:
    """A line for each unit that is left, with the time that rows let expect.

    `shorter` is how to ask for a short run, whose rows tell what none does yet.
    """
    name = store.answering.name
    paths = dict.fromkeys(folder.absolute() / name for folder in (store.results, OUT))
    rows = [row for path in paths for row in read_results(path)]
    units = left(cells, request, store, rows, maker.device.type == "cuda")
    table = plain_table(["unit"], ["seeds", "from step", "to step", "expected"])
    for unit in units:
        expected = "unknown" if unit.seconds is None else duration(unit.seconds)
        numbers = (str(unit.seeds), f"{unit.step:,}", f"{request.steps:,}", expected)
        table.add_row(cells[unit.number].name, *numbers)
    if units:
        Console(width=max(console.width, WIDTH)).print(table)
    known = [unit.seconds for unit in units if unit.seconds is not None]
    unknown = len(units) - len(known)
    console.print(
        f"{len(units)} units to make, {len(cells) - len(units)} answered by rows in "
        f"{store.results}; on {maker.place} one after the other: {duration(sum(known))}"
        + (f", and {unknown} of unknown time: a short run tells it ({shorter})" if unknown else ""),
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
