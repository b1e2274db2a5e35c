"""`prlstm plot`."""

from pathlib import Path
from typing import Annotated

import typer

from prlstm import tasks
from prlstm.cli.given import ROOT, read_run, told
from prlstm.cli.train import Root
from prlstm.report.figures import Curve, draw_runs, save_figure
from prlstm.training import RunFolder
from prlstm.training.config import differences
from prlstm.training.results import result
from prlstm.training.runs import METRICS, VALIDATION


def plot(
    run: Annotated[
        list[str], typer.Argument(metavar="RUN", help="Folders of runs, or their names.")
    ],
    to: Annotated[
        Path | None,
        typer.Option(
            help="Without its ending; by default `plot` in the folder of the run, beside several."
        ),
    ] = None,
    root: Root = ROOT,
) -> None:
    """Draw loss and accuracy over steps, and accuracy over length, as SVG and PNG."""
    with told():
        folders = [read_run(name, root) for name in run]
        figure = draw_runs(curves(folders))
        first = folders[0].path
        usual = (first if len(folders) == 1 else first.parent) / "plot"
        for path in save_figure(figure, usual if to is None else to):
            typer.echo(path)


def curves(folders: list[RunFolder]) -> list[Curve]:
    """What is drawn of runs, each under the name that tells it from the others."""
    drawn = []
    settings = differences([folder.config for folder in folders])
    for folder, setting in zip(folders, settings, strict=True):
        config = folder.config
        said = [
            str(value) if name in ("task", "model") else f"{name} {value}"
            for name, value in setting.items()
        ]
        scores = result(folder).scores
        counts = scores["last"].counts if "last" in scores else None
        drawn.append(
            Curve(
                label=", ".join([*said, f"seed {config.seed}"]),
                title=f"{tasks.get(config.task).paper_name}, {config.model}",
                metrics=folder.rows(METRICS),
                validations=folder.rows(VALIDATION),
                lengths=() if counts is None else counts.lengths,
                accuracy=() if counts is None else tuple(counts.accuracy.tolist()),
                longest=config.curriculum.longest,
                floor=tasks.get(config.task).floors.best,
            )
        )
    return drawn
