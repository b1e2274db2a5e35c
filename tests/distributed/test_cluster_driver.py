"""What a driver makes of what units say, and a unit of a driver that asks no more: without Ray."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from prlstm.experiments.crew import WAITING, Heard
from prlstm.experiments.runs import Store
from prlstm.experiments.sweep import read_sweep
from prlstm.report.rows import CURVES
from prlstm.training import Request

pytest.importorskip("ray")

from prlstm.distributed.cluster import engine, unit
from prlstm.distributed.cluster.places import Node, Share
from prlstm.distributed.cluster.unit import log_of


class Answers:
    """A stand-in for Ray: what a unit is asked is answered at once, or never."""

    def wait(self, answers: list[Any], num_returns: int, timeout: float) -> tuple[list[Any], None]:
        assert num_returns == len(answers) > 0
        return [one for one in answers if not isinstance(one, str)], None

    def get(self, answer: Any) -> Any:
        return answer

    def kill(self, actor: Any, no_restart: bool) -> None:
        pass


class Asked:
    """A unit that says the same whenever it is asked; `None` is one that does not answer."""

    def __init__(self, said: unit.Said | None) -> None:
        answer = "none yet" if said is None else said
        self.tell = SimpleNamespace(remote=lambda: answer)
        self.stop = SimpleNamespace(remote=lambda: None)


@dataclass
class Driving:
    """A driver of one cell without a cluster, and what was heard of it."""

    driver: engine._Driver
    heard: list[Heard]
    request: Request
    log: Path

    def busy(self, said: unit.Said | None = None) -> None:
        self.driver._add(0, Asked(said), self.request)

    @property
    def failure(self) -> str:
        (why,) = self.driver.failures.values()
        return why


@pytest.fixture
def driving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Driving:
    ray = Answers()
    for name in ("wait", "get", "kill"):
        monkeypatch.setattr(engine.ray, name, getattr(ray, name))
    monkeypatch.setattr(engine, "EVERY", 0.01)
    grid, heard = tmp_path / "grid.toml", list[Heard]()
    grid.write_text('task = "parity_check"\nmodel = "rnn"\nhidden_size = 4\nsteps = 20\n')
    read = read_sweep(grid)
    store = Store(tmp_path / "results", tmp_path, CURVES)
    driver = engine._Driver(
        Share(1, 0), read.cells, lambda busy: None, store, torch.device("cpu"), heard.append
    )
    return Driving(driver, heard, read.request, log_of(read.cells[0], store))


def test_a_unit_that_died_for_good(driving: Driving, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, heard = driving.driver, driving.heard
    driving.busy()
    driver._died(0, "its node is gone\nfor ever")
    name = driver.cells[0].name
    assert driving.failure == f"{name}: it died: its node is gone; its log: {driving.log}"
    assert "the unit died: its node is gone\nfor ever\n" in driving.log.read_text()
    assert (heard[-1].what, driver.busy) == ("failed", {})
    # of one whose rows are there another driver has only ended the actor
    monkeypatch.setattr(Store, "missing", lambda self, wanted, request: [])
    driver.failures.clear()
    driving.busy()
    driver._died(0, "killed")
    assert (heard[-1], driver.failures) == (Heard(0, "done"), {})


def test_rows_of_a_unit_that_are_not_seen(
    driving: Driving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "SEEN", 0.1)
    driving.busy(unit.Said(driving.request, ended="done"))
    driving.driver._hear()
    assert "it is done, but its rows are not seen in" in driving.failure


def test_a_unit_on_a_node_without_the_storage_goes_elsewhere(
    driving: Driving, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, heard = driving.driver, driving.heard
    there = [Node(name, name, {"CPU": 2.0}) for name in ("a", "b")]
    monkeypatch.setattr(engine, "nodes", lambda: there)
    assert driver._places() == 4
    said = unit.Said(driving.request, ended="misplaced", why="runs: not the storage", node="b")
    driver.is_all_chosen = True
    driving.busy(said)
    driver._hear()
    # no failure, and nothing more on that node
    assert (driver.busy, driver.failures, driver.is_all_chosen) == ({}, {}, False)
    assert heard[-1].line == "runs: not the storage; it is begun again elsewhere"
    assert driver._places() == 2
    assert driving.log.read_text() == "runs: not the storage\n"
    # where no node is left
    driving.busy(replace(said, node="a"))
    with pytest.raises(OSError, match="runs: not the storage; no other node holds a unit"):
        driver._hear()


def test_units_without_a_place_are_told(driving: Driving, monkeypatch: pytest.MonkeyPatch) -> None:
    driving.busy()
    driving.driver._hear()
    assert driving.heard == []
    monkeypatch.setattr(engine, "SILENT", 0.0)
    driving.driver._hear()
    assert driving.heard == [Heard(0, WAITING)]


def test_an_interrupt_waits_for_those_that_save(
    driving: Driving, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: engine._Driver, number: int, request: Request) -> None:
        raise KeyboardInterrupt

    # while rows of a unit that is done are looked for
    monkeypatch.setattr(engine._Driver, "_is_missing", interrupt)
    driving.busy(unit.Said(driving.request, ended="done"))
    with pytest.raises(KeyboardInterrupt):
        driving.driver._hear()
    begun = time.monotonic()
    driving.driver._stop()
    # while a unit waits for a place
    monkeypatch.setattr(engine, "THERE", 0.2)
    driving.busy()
    driving.driver._stop()
    assert time.monotonic() - begun < 10


class Clock:
    """A clock that moves when somebody sleeps."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        assert self.now < 300, "nobody asks, and it does not end"


def test_a_unit_that_nobody_asks_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, killed = Clock(), list[float]()
    monkeypatch.setattr(unit, "time", clock)
    context = SimpleNamespace(
        current_actor=None, was_current_actor_reconstructed=False, get_node_id=lambda: "n"
    )
    monkeypatch.setattr(unit.ray, "get_runtime_context", lambda: context)
    monkeypatch.setattr(unit.ray, "kill", lambda actor, no_restart: killed.append(clock.now))
    monkeypatch.setattr(unit.threading.Thread, "start", lambda self: None)
    monkeypatch.setattr(unit.Unit, "_make_logged", lambda self: None)
    order = SimpleNamespace(request=None, threads=torch.get_num_threads())
    one = unit.Unit(order)  # type: ignore[arg-type]
    one.lines.append("a line")
    assert (one.tell().lines, one.tell().lines, one.tell().node) == (("a line",), (), "n")
    one._work()
    assert one.tell().ended == "done"
    # after a while in which a driver may ask once more
    (ended,) = killed
    assert ended > 10
