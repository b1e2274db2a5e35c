"""Words as a person writes them, answers as a person reads them."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from prlstm import models, tasks
from tests.cli.command import in_a_line, prlstm


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    models.save(models.build("pr_lstm", "stack_manipulation", hidden_size=8, seed=0), path)
    return path


def answers(folder: Path, words: list[str]) -> list[str]:
    """By the model itself."""
    model = models.load(folder)
    said = []
    for word in words:
        with torch.no_grad():
            classes = model(torch.tensor([model.task.read(word)]))[0].argmax(-1).tolist()
        text = "".join(model.task.answer_symbols[one] for one in classes)
        said.append(text.partition("$")[0] + "$" * ("$" in text))
    return said


def test_one_answer_for_each_line(folder: Path) -> None:
    words = ["0 1 1 - +0", "01+1", "0 1 0 1 1 0 - - +1 +0", "1"]
    assert prlstm("predict", folder, stdin="\n".join(words)).splitlines() == answers(folder, words)


def test_a_word_may_come_in_pieces(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut anywhere: in the midst of +0, of a line end, of nothing."""
    words = ["0 1 1 - +0 +1+1", "01+1", "1"]
    want = answers(folder, words)
    text = "\r\n".join(words) + "\n"
    for piece in (1, 2, 3, 7):
        monkeypatch.setattr("prlstm.cli.predict.PIECE", piece)
        assert prlstm("predict", folder, stdin=text).splitlines() == want


def test_answers_on_the_way(folder: Path) -> None:
    text = prlstm("predict", folder, "--every", "2", stdin="0101-\n11\n")
    want = answers(folder, ["01", "0101", "0101-", "11"])
    counts = [2, 4, 5, 2]
    assert text.splitlines() == [f"{n}\t{word}" for n, word in zip(counts, want, strict=True)]


def test_lines_that_are_no_words(folder: Path) -> None:
    text = prlstm("predict", folder, stdin="01\n\n0x1\n1\n", code=1)
    first, last = answers(folder, ["01", "1"])
    lines = text.splitlines()
    assert [line for line in lines if not line.startswith("line")] == [first, "", "", last]
    assert "line 2: the line is empty: expected a word" in lines
    assert "line 3: text='0x1': 'x' is none of 0 1 - +0 +1" in lines
    for wrong in (b"01\xff\n", b"01\xc3", b"\xc3"):
        assert "is none of" in prlstm("predict", folder, stdin=wrong, code=1)
    text = prlstm("predict", folder, stdin="0" * 100_000 + "x", code=1)
    assert len(text) < 200
    assert prlstm("predict", folder, stdin=b"\xef\xbb\xbf01\n").splitlines() == [first]
    assert not prlstm("predict", folder, stdin="")


def test_weights_that_are_not_there(folder: Path) -> None:
    text = prlstm("predict", folder, "--weights", "best", stdin="01\n", code=1)
    assert "expected a file best.safetensors" in in_a_line(text)


def test_a_word_that_is_too_long_for_the_memory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(self: object) -> None:
        raise MemoryError("cannot hold it. And more")

    monkeypatch.setattr("prlstm.cli.predict.WordStream.answer", answer)
    text = prlstm("predict", folder, stdin="01\n", code=1)
    assert "Error: not enough memory (cannot hold it)" in text


def test_an_endless_line_is_read_in_constant_memory(tmp_path: Path) -> None:
    """The limit on memory is real, and not enough to keep the states of all tokens."""
    models.save(models.build("pr_lstm", "parity_check", hidden_size=64, seed=0), tmp_path)
    tokens = 600_000
    code = (
        "import resource, sys\n"
        "import torch\n"
        "from prlstm.cli import app\n"
        "torch.set_num_threads(1)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"try: app(['predict', {str(tmp_path)!r}, '--every', '200000'])\n"
        "except SystemExit: pass\n"
        "grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before\n"
        "print(grown, file=sys.stderr)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=b"01" * (tokens // 2), capture_output=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert [line.split("\t")[0] for line in lines] == ["200000", "400000", "600000"]
    # states of 64 features, h and c: a token takes 512 bytes if they are kept
    assert int(done.stderr.split()[-1]) * 1024 < tokens * 512 / 3


def test_on_a_terminal_it_says_what_it_expects(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import _NamedTextIOWrapper

    monkeypatch.setattr(_NamedTextIOWrapper, "isatty", lambda self: True, raising=False)
    text = prlstm("predict", folder, stdin="01\n")
    assert text.startswith("Stack Manipulation: words of 0 1 - +0 +1, one a line; Ctrl-D ends\n")
    assert tasks.get("stack_manipulation").paper_name in text
