"""When steps are captured, and what happens where that is refused: with graphs that are none."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console
from torch import Tensor

from prlstm.cli.display import display
from prlstm.training import RunConfig, RunFolder
from prlstm.training.capture import CapturedSteps
from prlstm.training.events import Noted


class Steps:
    """Counts what is made; a graph makes what was made while it was captured."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, refused: str | None = None) -> None:
        self.made: list[int] = []
        self.is_capturing, self.refused = False, refused
        self.said: list[str] = []
        stream = SimpleNamespace(wait_stream=lambda other: None)
        fakes = {
            "CUDAGraph": lambda: SimpleNamespace(replay=lambda: self.made.append(-1)),
            "graph": self.capture,
            "graph_pool_handle": object,
            "Stream": lambda device: stream,
            "device": lambda device: nullcontext(),
            "stream": lambda stream: nullcontext(),
            "current_stream": lambda: stream,
        }
        for name, fake in fakes.items():
            monkeypatch.setattr(torch.cuda, name, fake)
        self.steps = CapturedSteps(torch.device("cpu"), self.said.append)

    @contextmanager
    def capture(self, *arguments: object, stream: object = None) -> Iterator[None]:
        self.is_capturing = True
        try:
            yield
        finally:
            self.is_capturing = False

    def step(self, length: int) -> Tensor:
        if self.is_capturing and self.refused:
            raise RuntimeError(self.refused)
        if not self.is_capturing:
            self.made.append(length)
        return torch.tensor([float(length)])


def test_each_length_is_made_once_and_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Steps(monkeypatch)
    given = [float(case.steps(case.step, length)) for length in (5, 7, 5, 5, 7)]
    assert given == [5, 7, 5, 5, 7]
    assert case.made == [5, 7, -1, -1, -1]
    assert case.said == []


def test_what_is_replayed_is_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Steps(monkeypatch)
    case.steps(case.step, 5)
    first = case.steps(case.step, 5)
    case.steps(case.step, 5).zero_()
    assert first == 5


def test_refusals_are_told_once_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Steps(monkeypatch, refused="no such thing\nand more")
    assert [float(case.steps(case.step, length)) for length in (5, 5, 7)] == [5, 5, 7]
    assert case.made == [5, 5, 7]
    assert case.said == ["steps are not captured, and so slower: no such thing"]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_user_sees_the_line(terminal: bool, tmp_path: Path) -> None:
    console = Console(record=True, force_terminal=terminal, width=100)
    folder = RunFolder(tmp_path / "run", RunConfig(task="parity_check"))
    with display(console, [folder]) as report:
        report(Noted("steps are not captured"))
    assert "steps are not captured" in console.export_text()
