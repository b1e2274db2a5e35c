"""Makes `docs/cli.md`: every command is run, and what it says is written down. `make transcripts`.

What is fixed (help, errors) is compared with the document by a test; runs take a minute, and their
times differ.
"""

import os
import re
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from prlstm.cli import app

DOCUMENT = Path(__file__).parent / "cli.md"
WIDTH = "90"
# the runs that the preset `quick` makes
FIRST, SECOND = (f"parity_check-pr_lstm-80acb704-s{seed}" for seed in (0, 1))

# a table that takes a few seconds
SMALL = (
    "--tasks parity_check --models lstm,pr_lstm --seeds 2 --steps 200 --hidden-size 16 --samples 64"
)


@dataclass(frozen=True)
class Shown:
    """A command as it is typed; `stdin` is what is piped into it, `code` how it ends."""

    line: str
    stdin: str | None = None
    fixed: bool = False
    code: int = 0


@dataclass(frozen=True)
class Section:
    """A heading, some sentences, and commands."""

    heading: str
    text: str
    commands: tuple[Shown, ...]


def help_of(name: str) -> Shown:
    """The help of a command."""
    return Shown(f"prlstm {name} --help", fixed=True)


SECTIONS = (
    Section(
        "All commands",
        "`prlstm COMMAND --help` tells more of each.",
        (Shown("prlstm --help", fixed=True), Shown("prlstm trian", fixed=True, code=2)),
    ),
    Section(
        "train",
        "Trains all seeds of a command as one program, then scores them. The same command again "
        "goes on where it was stopped, and skips what is done. On a terminal a live table shows "
        "progress, speed, time left, loss and accuracy of every seed; in a pipe there are lines. "
        "A run is one configuration and one seed: a folder named by a hash of everything that "
        "changes its numbers, so that nothing is ever overwritten by other settings.\n\n"
        "`score` is that of the last weights. `best (validated)` is a column of its own: the "
        "weights that did best on words of another seed, of lengths 41 to 100. It appears where "
        "these are not the last ones.",
        (
            help_of("train"),
            Shown("prlstm train parity_check --preset quick --seeds 2"),
            Shown("prlstm train parity_check --model lstm --refine 2", fixed=True, code=2),
            Shown("prlstm train parity", fixed=True, code=2),
            Shown("prlstm train parity_check --learning-rate 0", fixed=True, code=2),
            Shown("prlstm train parity_check --device tpu", fixed=True, code=2),
            Shown("prlstm train parity_check --seeds all", fixed=True, code=2),
        ),
    ),
    Section(
        "resume",
        "Ctrl-C (or SIGTERM) finishes the step, saves, and says how to go on; a kill loses at most "
        "the steps since the last checkpoint. On a CPU the end is the same, bit for bit, as that "
        "of a run that was never stopped.",
        (
            help_of("resume"),
            Shown(f"prlstm resume {FIRST} --steps 1200"),
            Shown("prlstm resume nothing", fixed=True, code=1),
        ),
    ),
    Section(
        "eval",
        "Any lengths, any number of words. Right and all answers of every length and sub-batch of "
        "64 words are added to the run's `scores.jsonl`; what is there already is not counted once "
        "more.",
        (
            help_of("eval"),
            Shown(f"prlstm eval {SECOND} --lengths 100,1000,10000 --samples 64"),
            Shown(f"prlstm eval {SECOND} --samples 64"),
            Shown("prlstm eval parity_check --lengths 500:41", fixed=True, code=2),
            Shown("prlstm eval nothing", fixed=True, code=1),
        ),
    ),
    Section(
        "runs",
        "`--compare` has a line for each setting, with the settings that differ, over its seeds. "
        "`--json` gives all that is known; scores are between 0 and 1.",
        (
            help_of("runs"),
            Shown("prlstm runs"),
            Shown("prlstm runs --compare"),
            Shown("prlstm runs --model lstm"),
            Shown("prlstm runs --out nowhere", fixed=True),
            Shown("prlstm runs --task parity", fixed=True, code=2),
        ),
    ),
    Section(
        "predict",
        "Words are written as `prlstm tasks show` shows them. A line that is no word gets an empty "
        "answer and a message on standard error, and the exit code is 1. A line may be endless, as "
        "from `cat /dev/urandom | tr -dc 01`: with `--every` it is answered on the way.",
        (
            help_of("predict"),
            Shown(f"prlstm predict {SECOND}", "0110\n1 0 1 1\n10x\n", code=1),
            Shown(f"prlstm predict {SECOND} --every 100000", "10" * 150_000),
        ),
    ),
    Section(
        "inspect",
        "The tree of a word, the norm of every state in it, and the answer after every prefix. "
        "Where the terminal is too narrow for the tree, its nodes are listed level by level; a "
        "line begins with the number of its first node.",
        (
            help_of("inspect"),
            Shown("prlstm inspect parity_check 0110100"),
            Shown("prlstm inspect cycle_navigation '+.-+-.++.-+.--'"),
            Shown("prlstm inspect parity_check 01x", fixed=True, code=1),
        ),
    ),
    Section(
        "plot",
        "Several runs are drawn into one figure. The lengths of training are shaded.",
        (
            help_of("plot"),
            Shown(f"prlstm plot {FIRST} {SECOND}"),
            Shown("prlstm plot nothing", fixed=True, code=1),
        ),
    ),
    Section(
        "reproduce",
        "The paper's tables and figures, one command each: see [experiments.md](experiments.md). "
        "All of them go on where they were stopped, and skip what rows already answer.",
        (
            help_of("reproduce"),
            help_of("reproduce table1"),
            help_of("reproduce table2"),
            Shown(f"prlstm reproduce table2 {SMALL}"),
            Shown("prlstm reproduce table2 --tasks parity", fixed=True, code=2),
            Shown("prlstm reproduce table2 --budget soon", fixed=True, code=2),
            help_of("reproduce table3"),
            help_of("reproduce figure1"),
            Shown("prlstm reproduce figure1 7", fixed=True),
            help_of("reproduce figure3"),
            help_of("reproduce figure4"),
            help_of("reproduce shipped"),
            Shown("prlstm reproduce figure9", fixed=True, code=2),
        ),
    ),
    Section(
        "sweep",
        "A grid of settings in one file: see [experiments.md](experiments.md#a-sweep).",
        (help_of("sweep"), Shown("prlstm sweep nothing.toml", fixed=True, code=1)),
    ),
    Section(
        "report",
        "All results as one page of HTML: see [report.md](report.md).",
        (help_of("report"), Shown("prlstm report --results nothing", fixed=True, code=1)),
    ),
    Section(
        "tasks, models, tree",
        "See [tasks.md](tasks.md), [models.md](models.md) and the [README](../README.md).",
        (
            help_of("tasks"),
            help_of("tasks show"),
            Shown("prlstm tasks show stack_manipulation --samples 3", fixed=True),
            help_of("models"),
            help_of("models show"),
            Shown("prlstm models show pr_lstm", fixed=True),
            help_of("tree"),
            Shown("prlstm tree 7", fixed=True),
        ),
    ),
)


def transcript(shown: Shown) -> str:
    """A command and what it says."""
    runner = CliRunner(env={"COLUMNS": WIDTH, "TERM": "dumb"})
    program, *arguments = shlex.split(shown.line)
    result = runner.invoke(app, arguments, input=shown.stdin, prog_name=program)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == shown.code, result.output
    piped = ""
    if shown.stdin is not None:
        text = shown.stdin if len(shown.stdin) < 60 else "101010..."
        piped = f"printf {shlex.quote(text).replace(chr(10), chr(92) + 'n')} | "
    code = f"[exit code {result.exit_code}]\n" if result.exit_code else ""
    output = "\n".join(line.rstrip() for line in result.output.strip("\n").splitlines())
    return f"```console\n$ {piped}{shown.line}\n{output}\n{code}```\n"


def main() -> None:
    """Write the document."""
    parts = [
        "# The command line\n\nMade by `make transcripts`: nothing here is typed by hand. "
        "Every error ends with an exit code that is not zero: 2 for what was typed wrongly, 1 for "
        "what went wrong, 130 for an interrupt.\n"
    ]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for section in SECTIONS:
            parts.append(f"## {section.heading}\n\n{section.text}\n")
            parts += [transcript(shown) for shown in section.commands]
    DOCUMENT.write_text(re.sub(r"\n{3,}", "\n\n", "\n".join(parts)))
    print(f"{DOCUMENT} written")


if __name__ == "__main__":
    main()
