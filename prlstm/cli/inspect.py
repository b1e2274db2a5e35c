"""`prlstm inspect`."""

import shutil
import statistics
from typing import Annotated

import typer
from torch import Tensor

from prlstm.cli.given import ROOT, find_model, read_device, told
from prlstm.cli.train import Device, Root, Which
from prlstm.models.folder import load
from prlstm.models.inspection import Answer, Inspection
from prlstm.models.inspection import inspect as looked_into
from prlstm.tasks import Task
from prlstm.tree.plan import Merge, Step

# what stands above an empty cell, and above one that is left to computation
EMPTY, COMPUTATION = "_", "."
RIGHT, WRONG, NO_WORD = "right", "WRONG", "no word"
# characters of a norm in a list
NORM = 6
# answers that are shorter stand in a column
WIDEST = 40


def inspect(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A model that comes with the package, as parity_check; a folder; a run's name.",
        ),
    ],
    word: Annotated[str, typer.Argument(metavar="WORD", help="As `prlstm tasks show` shows them.")],
    weights: Which = "last",
    device: Device = "auto",
    root: Root = ROOT,
) -> None:
    """Look into the tree of one word: the size of every state, the answer after every prefix."""
    with told():
        loaded = load(find_model(model, root), read_device(device), weights=weights)
        seen = looked_into(loaded, loaded.task.read(word))
    task, plan = loaded.task, seen.sweep.plan
    typer.echo(
        f"{loaded.name} of {seen.block(0, 0)[0].shape[-1]} features on {task.paper_name}: "
        f"{_count(len(seen.word), 'token')}, {len(seen.cells)} cells, "
        f"{_count(plan.merges, 'merge')}, {plan.depth} deep"
    )
    typer.echo(f"\nThe norm of h at every node ({EMPTY}: an empty cell, where answers are read):\n")
    width = shutil.get_terminal_size((120, 24)).columns
    try:
        typer.echo(_drawn(seen, width))
    except ValueError:
        typer.echo(_listed(seen, width))
        typer.echo("\n(The tree of a shorter word is drawn, or of this one on a wider terminal.)")
    typer.echo("\nThe answer, if the word ended there:\n")
    typer.echo("\n".join(_answers(seen)))


def _count(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _drawn(seen: Inspection, width: int) -> str:
    """The tree, with norms where two states meet."""
    plan = seen.sweep.plan
    leaves = [_norm(seen.block(0, place)[0]) for place in range(len(seen.cells))]

    def result(step: Step, merge: Merge) -> str:
        if step.phase == "up":
            return _norm(seen.block(step.level, (merge.start - 1) >> step.level)[0])
        return _norm(seen.prefix(merge.stop)[0])

    return plan.draw(width, heads=_heads(seen), leaves=leaves, results=result)


def _listed(seen: Inspection, width: int) -> str:
    """Every node of a tree that is too wide, level by level; lines begin with a node's number."""
    blocks, cells = seen.sweep.blocks, len(seen.cells)
    levels = [("leaves", blocks[0][0][0])]
    levels += [(f"blocks of {1 << k} cells", level[0][0]) for k, level in enumerate(blocks)][1:]
    levels.append(("states after every cell", seen.sweep.prefixes[0][0][0]))
    margin = len(str(cells)) + 2
    of_each = max(1, (width - margin) // NORM // 5 * 5)
    lines = []
    for name, states in levels:
        norms = states.double().norm(dim=-1).tolist()
        lines.append(
            f"{name}: {len(norms)}, from {min(norms):.2f} to {max(norms):.2f}, "
            f"mean {statistics.mean(norms):.2f}"
        )
        for first in range(0, len(norms), of_each):
            some = "".join(f"{norm:{NORM}.2f}" for norm in norms[first : first + of_each])
            lines.append(f"{first + 1:>{margin}}{some}")
    return "\n".join(lines)


def _norm(h: Tensor) -> str:
    return f"{float(h.norm()):.2f}"


def _heads(seen: Inspection) -> list[str]:
    task = seen.model.task
    symbols = [symbol.strip() for symbol in task.symbols]
    behind = len(seen.cells) - len(seen.word) - task.output_length(len(seen.word))
    return [
        *(symbols[token] for token in seen.word),
        *[COMPUTATION] * behind,
        *[EMPTY] * task.output_length(len(seen.word)),
    ]


def _answers(seen: Inspection) -> list[str]:
    """A line for each prefix."""
    task = seen.model.task
    widest = max(len(task.show_answer(answer.classes)) for answer in seen.answers)
    return [
        f"{count:>5}  {_line(task, answer, min(widest, WIDEST))}"
        for count, answer in enumerate(seen.answers, 1)
    ]


def _line(task: Task, answer: Answer, width: int) -> str:
    said, sure = task.show_answer(answer.classes), _percent(min(answer.sure))
    told = NO_WORD
    if answer.truth is not None:
        told = (
            RIGHT
            if answer.classes == answer.truth
            else f"{WRONG}: {task.show_answer(answer.truth)}"
        )
    return f"{said:<{width}}  {sure:>7}  {told}"


def _percent(share: float) -> str:
    """Rounded, but no share below one is said to be all."""
    rounded = f"{share:.2%}"
    return ">99.99%" if share < 1 and rounded == "100.00%" else rounded
