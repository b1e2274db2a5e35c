"""Two formal languages learned from words of up to 40 tokens, tested at 500 and at a million.

Run by `make demo`: 40 seconds on 2 cores. What is there already is not trained once more.
"""

import resource
import time
from pathlib import Path

import torch
from rich.console import Console

import prlstm
from prlstm.cli.display import display
from prlstm.cli.plot import curves
from prlstm.cli.tables import percent, plain_table
from prlstm.models.streaming import WordStream
from prlstm.report.figures import draw_runs, save_figure
from prlstm.report.paper import published
from prlstm.stream import keys, uniform
from prlstm.training import Request, RunConfig, RunFolder, Schedule, score, train
from prlstm.training.presets import PRESETS
from prlstm.training.results import result

TASKS = ("parity_check", "missing_duplicate_string")
ROOT = Path("runs")
TOKENS, ASKED = 1_000_000, 100


def learn(console: Console, task: str) -> RunFolder:
    """Train with the preset `quick` and score: `prlstm train TASK --preset quick` does the same."""
    quick = PRESETS["quick"]
    config = RunConfig(
        task=task,
        hyper_parameters=quick.hyper_parameters,
        batch_size=quick.batch_size,
        schedule=Schedule(rate=quick.rate),
    )
    request = Request(steps=quick.steps, validate_every=quick.validate_every, samples=quick.samples)
    with display(console, [RunFolder(ROOT / config.name, config)]) as report:
        (folder,) = train([config], request, ROOT, report=report)
        score([folder], samples=quick.samples, report=report)
    return folder


def print_table(console: Console, folders: list[RunFolder]) -> None:
    """What they score beside the paper's numbers and the floors."""
    console.print("Answers right, mean over lengths 41 to 500; trained on lengths 1 to 40\n")
    columns = ("steps", "trained for", "score", "paper", "paper's LSTM", "guessing")
    table = plain_table(["task"], columns)
    for one in map(result, folders):
        task, options = one.config.task, one.config.hyper_parameters
        paper = (percent(published(task, model, options)) for model in ("pr_lstm", "lstm"))
        table.add_row(
            prlstm.tasks.get(task).paper_name,
            f"{one.step:,}",
            f"{one.seconds:.0f} s",
            f"[bold]{percent(one.score)}[/]",
            *paper,
            percent(one.floor),
        )
    console.print(table)


def stream(console: Console, folder: RunFolder) -> None:
    """The parity of a million bits, asked for at a hundred prefixes of them."""
    model = prlstm.load(folder.path)
    bits = (uniform(keys([0], "demo"), 0, TOKENS)[0] < 0.5).long()
    parity = bits.cumsum(0) % 2
    word, right = WordStream(model), 0
    before, start = peak_megabytes(), time.perf_counter()
    for piece in bits.split(TOKENS // ASKED):
        word.feed(piece)
        (answer,) = word.answer()
        right += answer == parity[word.count - 1]
    seconds = time.perf_counter() - start
    console.print(
        f"Parity streamed over {word.count:,} tokens: right at {right} of {ASKED} prefixes, "
        f"{seconds:.1f} s, peak memory of the process {peak_megabytes():.0f} MB "
        f"({before:.0f} MB before)",
        highlight=False,
    )


def peak_megabytes() -> float:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Learn, score, draw, stream."""
    console = Console()
    # small matrices: a second thread gains little, and on a busy machine it only waits
    torch.set_num_threads(1)
    start = time.perf_counter()
    folders = []
    for task in TASKS:
        console.print(f"[bold]{prlstm.tasks.get(task).paper_name}[/], words of 1 to 40 tokens")
        folders.append(learn(console, task))
    console.print()
    print_table(console, folders)
    console.print(
        "\nOf the models in the paper only Tape-RNN and PR-LSTM solve Missing Duplicate.\n",
        highlight=False,
    )
    stream(console, folders[0])
    drawn = save_figure(draw_runs(curves(folders)), ROOT / "demo")
    for name, paths in (("plot", drawn), ("runs", [folder.path for folder in folders])):
        console.print(f"{name}: {'  '.join(map(str, paths))}", highlight=False, soft_wrap=True)
    console.print(f"{time.perf_counter() - start:.0f} s in all", highlight=False)


if __name__ == "__main__":
    main()
