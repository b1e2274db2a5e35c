"""What the documents say: code runs, commands can be typed, links lead somewhere."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from prlstm.cli import app
from prlstm.tasks import registry

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# pages whose blocks of Python are one program; elsewhere each block runs alone
CONTINUED = ("guide.md", "tree.md")
FENCED = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1``` *$", re.DOTALL | re.MULTILINE)
# what a document may ask a reader to type besides `prlstm`; the first word of a command
PROGRAMS = {"cat", "cd", "echo", "make", "pip", "printf", "python", "ray", "source", "torchrun"}


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path, language: str) -> list[tuple[int, str]]:
    """The line before each block of a language, and the block."""
    text = path.read_text()
    return [
        (text[: found.start(3)].count("\n"), found[3])
        for found in FENCED.finditer(text)
        if found[2] == language
    ]


def prose(path: Path) -> str:
    """A document without its blocks."""
    return FENCED.sub("", path.read_text())


def programs() -> Iterator[tuple[str, Path, list[tuple[int, str]]]]:
    """Blocks of Python that run together."""
    for path in DOCUMENTS:
        found = blocks(path, "python")
        if path.name in CONTINUED:
            yield named(path), path, found
        else:
            yield from ((f"{named(path)}:{line + 1}", path, [(line, code)]) for line, code in found)


PYTHON = list(programs())


@pytest.mark.parametrize(
    ("path", "program"), [one[1:] for one in PYTHON], ids=[name for name, *_ in PYTHON]
)
def test_code_runs(
    path: Path,
    program: list[tuple[int, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "TASKS", dict(registry.TASKS))
    names: dict[str, Any] = {}
    for line, code in program:
        # an error names the line of the document
        exec(compile("\n" * line + code, str(path), "exec"), names)


def test_there_is_code() -> None:
    assert {"README.md", "docs/guide.md", "docs/tree.md"} <= {named(path) for _, path, _ in PYTHON}
    assert all(len(program) > 5 for _, path, program in PYTHON if path.name in CONTINUED)


def test_every_block_is_closed() -> None:
    for path in DOCUMENTS:
        assert "```" not in prose(path), f"{named(path)}: a block that does not end"


def commands(script: str) -> Iterator[list[str]]:
    """The commands of a block: what stands between pipes, without redirections."""
    for line in script.replace("\\\n", " ").splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        command: list[str] = []
        into_file = False
        for word in words:
            if set(word) <= set("|&;"):
                yield command
                command = []
            elif set(word) <= set("<>"):
                into_file = True
            elif into_file:
                into_file = False
            elif command or not re.fullmatch(r"\w+=.*", word):
                command.append(word)
        if command:
            yield command


def check_typed(words: list[str]) -> None:
    """The command line takes these words; nothing is run."""
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        assert words[0] in command.commands, f"no command {words[0]!r}"
        command, words = command.commands[words[0]], words[1:]
    try:
        command.make_context("prlstm", list(words))
    except typer.Exit:
        # help, or the version
        assert words[-1].startswith("--")


SHELL = [
    pytest.param(script, id=f"{named(path)}:{line + 1}")
    for path in DOCUMENTS
    for line, script in blocks(path, "sh")
]


@pytest.mark.parametrize("script", SHELL)
def test_commands_can_be_typed(script: str) -> None:
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    for program, *words in commands(script):
        name = program.rpartition("/")[2]
        if name == "prlstm":
            check_typed(words)
            continue
        assert name in PROGRAMS, f"{program}: say in PROGRAMS that a document may use it"
        if name == "make":
            targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            assert set(words) <= set(targets)
        for word in words:
            assert not word.endswith(".py") or (ROOT / word).is_file(), word


@pytest.mark.parametrize(
    "wrong",
    [["trian"], ["train"], ["train", "parity_check", "--stepz", "3"], ["tasks", "shwo", "a"]],
    ids=" ".join,
)
def test_a_wrong_command_is_found(wrong: list[str]) -> None:
    with pytest.raises(Exception, match=r"trian|Missing|stepz|shwo"):
        check_typed(wrong)


def test_commands_are_cut_at_pipes() -> None:
    script = "A=1 echo 01 10 | prlstm predict \\\n  x --every 2 > out  # why\nmake test && cd b"
    assert list(commands(script)) == [
        ["echo", "01", "10"],
        ["prlstm", "predict", "x", "--every", "2"],
        ["make", "test"],
        ["cd", "b"],
    ]


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_commands_that_are_named_exist(path: Path) -> None:
    """In a sentence, as in `prlstm tasks show NAME`: commands and options are known."""
    for said in re.findall(r"`(?:\.venv/bin/)?prlstm ([^`]+)`", prose(path)):
        command: Any = typer.main.get_command(app)
        words = iter(shlex.split(said))
        for word in words:
            if word.startswith("--"):
                options = {name: one for one in command.params for name in one.opts}
                assert word in {*options, "--help"}, f"{named(path)}: prlstm {said}"
                if word != "--help" and not options[word].is_flag:
                    next(words, None)
            elif hasattr(command, "commands") and not word.isupper():
                assert word in command.commands, f"{named(path)}: prlstm {said}"
                command = command.commands[word]


def anchors(path: Path) -> set[str]:
    """Headings as links name them."""
    return {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    }


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if "://" not in target:
            name, _, heading = target.partition("#")
            other = path.parent / name if name else path
            assert other.exists(), target
            assert not heading or heading in anchors(other), target
