"""`prlstm train` and `prlstm resume`."""

import dataclasses
import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
import typer
from rich.console import Console

from prlstm import models, tasks
from prlstm.cli.display import display
from prlstm.cli.given import (
    INTERRUPTED,
    ROOT,
    named,
    read_device,
    read_run,
    read_seeds,
    told,
    typed,
)
from prlstm.cli.options import flag, with_model_options
from prlstm.cli.tables import print_results
from prlstm.training import Curriculum, Report, Request, RunConfig, RunFolder, Schedule, loop
from prlstm.training.interrupt import terminations_as_interrupts
from prlstm.training.presets import PRESETS
from prlstm.training.results import result
from prlstm.training.scoring import kinds_of_weights, score

# seeds that are named one by one
MOST_NAMED = 10
PROTOCOL, STOPPING = "Options of the training", "Options of validation and score"
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
Root = Annotated[Path, typer.Option("--out", help="The folder of all runs.")]
Which = Annotated[
    Literal["last", "best", "average"],
    typer.Option(help="The last ones, those that validated best, or their average."),
]
TensorBoard = Annotated[bool, typer.Option("--tensorboard", help="Write event files as well.")]


def _option(help: str, panel: str, **more: Any) -> Any:
    return typer.Option(help=help, rich_help_panel=panel, show_default=False, **more)


@with_model_options
def train(
    task: Annotated[str, typer.Argument(metavar="TASK", help="A name that `prlstm tasks` lists.")],
    model: Annotated[str, typer.Option(help="A name that `prlstm models` lists.")] = "pr_lstm",
    preset: Annotated[
        Literal["default", "quick", "paper"],
        typer.Option(help="; ".join(f"{name}: {one.about}" for name, one in PRESETS.items()) + "."),
    ] = "default",
    seeds: Annotated[
        str | None,
        typer.Option(help="10 for the seeds 0 to 9; 3,4,5 or 3:5 for those; 3, for one."),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Updates of every seed.")] = None,
    device: Device = "auto",
    precision: Annotated[
        Literal["float32", "tf32", "bfloat16", "float64"], typer.Option(help="Of the products.")
    ] = "float32",
    root: Root = ROOT,
    tensorboard: TensorBoard = False,
    batch_size: Annotated[int | None, _option("Words of a step. (128)", PROTOCOL)] = None,
    learning_rate: Annotated[float | None, _option("Of Adam. (0.001)", PROTOCOL)] = None,
    schedule: Annotated[
        Literal["constant", "cosine"],
        _option("How the learning rate goes on; cosine: down to zero. (constant)", PROTOCOL),
    ] = "constant",
    warm_up: Annotated[
        int, _option("Steps over which the learning rate rises first. (0)", PROTOCOL)
    ] = 0,
    decay_steps: Annotated[
        int | None, _option("Steps to the end of the cosine. (--steps)", PROTOCOL)
    ] = None,
    clip: Annotated[float, _option("The largest norm of a seed's gradient. (1.0)", PROTOCOL)] = 1.0,
    average: Annotated[
        float,
        _option("Share that an average of the weights keeps at a step, as 0.999. (off)", PROTOCOL),
    ] = 0.0,
    curriculum: Annotated[
        Literal["uniform", "fixed", "increasing", "reverse_exponential"],
        _option("How the length of a step's words is chosen. (uniform)", PROTOCOL),
    ] = "uniform",
    longest: Annotated[int, _option("The longest word of training. (40)", PROTOCOL)] = 40,
    grow_every: Annotated[
        int, _option("Steps after which `increasing` takes one length more. (1000)", PROTOCOL)
    ] = 1000,
    tau: Annotated[
        float, _option("`reverse_exponential`: a length's chance goes with tau^L. (0.9)", PROTOCOL)
    ] = 0.9,
    validate_every: Annotated[
        int | None,
        _option("Steps between validations on lengths 41 to 100; 0: none. (1000)", STOPPING),
    ] = None,
    until_solved: Annotated[
        bool,
        typer.Option(
            "--until-solved",
            help="Stop a seed when it validates at 99 % or more.",
            rich_help_panel=STOPPING,
        ),
    ] = False,
    samples: Annotated[
        int | None,
        _option("Words of each length 41 to 500 for the score, a multiple of 64. (512)", STOPPING),
    ] = None,
    checkpoint_seconds: Annotated[
        float, _option("Seconds between checkpoints. (60)", STOPPING)
    ] = 60.0,
    *,
    model_options: dict[str, Any],
) -> None:
    """Train a model on a task, many seeds at once, and score it at lengths it has not seen.

    The same command again goes on where it was stopped.
    """
    chosen, usual = read_device(device), PRESETS[preset]
    named(tasks.get, task, "TASK")
    kind = named(models.kind, model, "--model")
    known = {field.name for field in dataclasses.fields(kind.options)}
    for name in model_options.keys() - known:
        raise typer.BadParameter(
            f"{model} has no such option; it has: {', '.join(map(flag, sorted(known)))}",
            param_hint=flag(name),
        )
    preset_options = {n: value for n, value in usual.hyper_parameters.items() if n in known}
    steps = usual.steps if steps is None else steps
    with typed():
        request = Request(
            steps=steps,
            validate_every=usual.validate_every if validate_every is None else validate_every,
            until_solved=until_solved,
            checkpoint_seconds=checkpoint_seconds,
            samples=usual.samples if samples is None else samples,
        )
        config = RunConfig(
            task=task,
            model=model,
            hyper_parameters=preset_options | model_options,
            batch_size=usual.batch_size if batch_size is None else batch_size,
            clip=clip,
            precision=precision,
            average=average,
            curriculum=Curriculum(kind=curriculum, longest=longest, every=grow_every, tau=tau),
            schedule=Schedule(
                rate=usual.rate if learning_rate is None else learning_rate,
                kind=schedule,
                warm_up=warm_up,
                decay_steps=_decay_steps(schedule, decay_steps, steps),
            ),
        )
    numbers = range(usual.seeds) if seeds is None else read_seeds(seeds)
    configs = [config.with_seed(seed) for seed in numbers]
    with told():
        _train_and_score(configs, request, root, chosen, tensorboard=tensorboard)


def resume(
    run: Annotated[
        list[str], typer.Argument(metavar="RUN", help="Folders of runs, or their names.")
    ],
    steps: Annotated[
        int | None, typer.Option(help="Go on to so many steps; by default as was asked before.")
    ] = None,
    device: Device = "auto",
    root: Root = ROOT,
    tensorboard: TensorBoard = False,
) -> None:
    """Go on with runs where they were stopped; seeds of one configuration go on together."""
    chosen = read_device(device)
    # runs that differ in their seeds alone, with what is asked of them
    groups: dict[tuple[Path, str, Request], list[RunFolder]] = {}
    with told():
        for folder in dict.fromkeys(read_run(name, root) for name in run):
            request = folder.request()
            if steps is not None:
                request = dataclasses.replace(request, steps=steps)
            key = (folder.path.parent, folder.config.with_seed(0).name, request)
            groups.setdefault(key, []).append(folder)
    codes = set()
    for (parent, _, request), folders in groups.items():
        configs = [folder.config for folder in folders]
        try:
            with told():
                _train_and_score(configs, request, parent, chosen, tensorboard=tensorboard)
        except typer.Exit as ended:
            # the others can go on, unless somebody wants to stop
            if ended.exit_code == INTERRUPTED:
                raise
            codes.add(ended.exit_code)
    if codes:
        raise typer.Exit(max(codes))


def _decay_steps(schedule: str, given: int | None, steps: int) -> int:
    """The end of the decay; without one it is no setting that could tell runs apart."""
    if given is not None:
        return given
    return steps if schedule == "cosine" else Schedule().decay_steps


def _train_and_score(
    configs: Sequence[RunConfig],
    request: Request,
    root: Path,
    device: torch.device,
    *,
    tensorboard: bool,
) -> None:
    """Train, score, and show both."""
    console = Console()
    first, seeds = configs[0], [str(config.seed) for config in configs]
    shown = seeds if len(seeds) <= MOST_NAMED else [*seeds[:2], "...", seeds[-1]]
    console.print(
        f"{first.model} on {first.task}, {'seed' if len(seeds) == 1 else 'seeds'} "
        f"{', '.join(shown)}: {request.steps:,} steps on {device}, in {root}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    folders = [RunFolder(root / config.name, config) for config in configs]
    failed: FloatingPointError | None = None
    with ExitStack() as held:
        held.enter_context(terminations_as_interrupts())
        report = held.enter_context(display(console, folders))
        if tensorboard:
            from prlstm.training.tensorboard import event_files

            report = held.enter_context(event_files(folders, report))
        try:
            loop.train(configs, request, root, device=device, report=report)
        except KeyboardInterrupt:
            held.close()
            _say_interrupted(console, folders)
        except FloatingPointError as wrong:
            failed = wrong
        folders = [folder for folder in folders if folder.step() is not None]
        try:
            _score_all(folders, request.samples, device, report)
        except KeyboardInterrupt:
            held.close()
            _say_interrupted(console, folders, "; the score is not finished")
    if folders:
        print_results(console, [result(folder) for folder in folders])
        console.print(_where(folders), highlight=False, markup=False, soft_wrap=True)
    if failed is not None:
        raise failed


def _score_all(
    folders: Sequence[RunFolder], samples: int, device: torch.device, report: Report
) -> None:
    """The last weights of every run, then the others that there are."""
    by_kind: dict[str, list[RunFolder]] = {}
    for folder in folders:
        for kind in kinds_of_weights(folder):
            by_kind.setdefault(kind, []).append(folder)
    for kind, some in by_kind.items():
        score(some, kind, samples=samples, device=device, report=report)


def _say_interrupted(console: Console, folders: Sequence[RunFolder], more: str = "") -> None:
    steps = {folder.step() or 0 for folder in folders}
    at = " and ".join(f"{step:,}" for step in sorted(steps))
    names = " ".join(shlex.quote(str(folder.path)) for folder in folders)
    console.print(
        f"Interrupted. Saved as of step {at}{more}. To go on:\n  prlstm resume {names}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    raise typer.Exit(INTERRUPTED)


def _where(folders: Sequence[RunFolder]) -> str:
    """Where the runs are, in one word that a shell understands."""
    path = shlex.quote(str(folders[0].path))
    several = shlex.quote(str(folders[0].path).rpartition("-s")[0]) + "-s*"
    return f"\n{path if len(folders) == 1 else several}"
