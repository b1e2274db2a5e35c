"""Cells made on a Ray cluster of several nodes on this machine, some of which are lost."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from prlstm.experiments.budget import in_order
from prlstm.experiments.crew import Heard, Listener, work
from prlstm.experiments.runs import Store
from prlstm.experiments.sweep import Sweep, read_sweep
from prlstm.files import Row
from prlstm.report.rows import CURVES, FIGURE3, SCORES, read_results
from prlstm.training import RunFolder
from prlstm.training.runs import locked
from tests.cli.command import TINY, in_a_line, prlstm

pytest.importorskip("ray")
pytestmark = pytest.mark.cluster

CPU = torch.device("cpu")
GRID = """
    task = ["parity_check", "even_pairs"]
    model = "rnn"
    hidden_size = [4, 6, 8]
    batch_size = 8
    longest = 10
    seeds = 2
    steps = 1000
    samples = 64
    lengths = [5, "9:11"]
"""
# a node that is lost is missed at once, not after half a minute
SOON = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 300,
        "health_check_timeout_ms": 2000, "health_check_failure_threshold": 3}  # fmt: skip
# of a row, what a clock or a machine says
TIMES = ("seconds", "score_seconds", "made_with")
NODE = {"num_cpus": 1, "object_store_memory": 80_000_000}


@dataclass
class Nodes:
    """A cluster, of which a test may take a node away."""

    cluster: Any
    address: str

    def remove(self, node_id: str) -> None:
        (lost,) = [node for node in self.cluster.worker_nodes if node.node_id == node_id]
        self.cluster.remove_node(lost, allow_graceful=False)

    def add(self) -> None:
        self.cluster.add_node(**NODE)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    """A cluster of a head that works not, and two nodes of one processor; and its driver."""
    from ray.cluster_utils import Cluster

    from prlstm.distributed.cluster.connection import connected

    with pytest.MonkeyPatch.context() as patch:
        # units and the run that they are compared with share what there is alike
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        head = NODE | {"num_cpus": 0, "include_dashboard": False, "_system_config": SOON}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        try:
            for _ in range(2):
                cluster.add_node(**NODE)
            with connected(cluster.address):
                yield Nodes(cluster, cluster.address)
        finally:
            cluster.shutdown()


@pytest.fixture(scope="module")
def grid_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("grid") / "grid.toml"
    path.write_text(GRID)
    return path


@pytest.fixture(scope="module")
def grid(grid_file: Path) -> Sweep:
    return read_sweep(grid_file)


def store_of(grid: Sweep, path: Path) -> Store:
    return Store(path / "results", path / "runs", CURVES, lengths=grid.lengths)


def everything(store: Store) -> list[list[Row]]:
    """Scores and curves without what a clock says, in any order of cells."""
    found = []
    for name in (SCORES, CURVES):
        rows = timeless(store.results / name)
        found.append(sorted(rows, key=lambda row: (row["run"], row.get("weights", ""))))
    return found


def timeless(path: Path) -> list[Row]:
    rows = read_results(path)
    return [{name: value for name, value in row.items() if name not in TIMES} for row in rows]


@pytest.fixture(scope="module")
def serial(grid: Sweep, tmp_path_factory: pytest.TempPathFactory) -> list[list[Row]]:
    """What this process alone makes."""
    store = store_of(grid, tmp_path_factory.mktemp("serial"))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    work(grid.cells, in_order(grid.cells, grid.request, store), store, CPU, lambda heard: None)
    torch.set_num_threads(threads)
    return everything(store)


def made(grid: Sweep, store: Store, listen: Listener, seconds: float = 60.0) -> list[str]:
    """Make the cells on the cluster; units save every so many seconds."""
    from prlstm.distributed.cluster.engine import Engine
    from prlstm.distributed.cluster.places import Share

    request = replace(grid.request, checkpoint_seconds=seconds)
    choose = in_order(grid.cells, request, store)
    return Engine(Share(1, 0)).work(grid.cells, choose, store, CPU, listen)


def log(grid: Sweep, store: Store, cell: int) -> str:
    from prlstm.distributed.cluster.unit import log_of

    return log_of(grid.cells[cell], store).read_text()


def units_there() -> list[str]:
    from ray.util import list_named_actors

    return list_named_actors()


def test_the_same_rows_and_one_that_fails(
    nodes: Nodes, grid: Sweep, serial: list[list[Row]], tmp_path: Path
) -> None:
    store = store_of(grid, tmp_path)
    # a cell that cannot be made, the second one
    damaged = replace(grid.cells[0], seeds=(7,))
    (store.runs / damaged.configs[0].name).mkdir(parents=True)
    (store.runs / damaged.configs[0].name / "config.json").write_text("{")
    more = replace(grid, cells=[grid.cells[0], damaged, *grid.cells[1:]])
    # and one that somebody else trains for a while
    taken, heard = ExitStack(), list[Heard]()
    taken.enter_context(locked(store.runs / more.cells[2].configs[0].name))

    def listen(one: Heard) -> None:
        heard.append(one)
        if one.what == "waiting for another process":
            taken.close()

    failures = made(more, store, listen)
    assert everything(store) == serial
    assert {one.cell for one in heard if one.what.startswith("waiting")} == {2}
    assert {one.cell for one in heard if one.what == "done"} == {0, 2, 3, 4, 5, 6}
    assert any(one.what == "training" and one.steps == 1000 for one in heard)
    (failure,) = failures
    assert failure.startswith(f"{damaged.name}: ValueError: ")
    path = Path(failure.partition("its log: ")[2])
    assert path.parent == store.runs / "logs"
    assert "Traceback" in path.read_text()
    assert not units_there()


def test_a_worker_is_killed_and_a_node_is_lost(
    nodes: Nodes, grid: Sweep, serial: list[list[Row]], tmp_path: Path
) -> None:
    store = store_of(grid, tmp_path)
    lost: list[tuple[int, str]] = []

    def listen(heard: Heard) -> None:
        # what is told here may be half a second old
        is_saved = store.made(grid.cells[heard.cell]) > 0
        if heard.what != "training" or not is_saved or heard.step > 400 or len(lost) == 2:
            return
        ((node, process),) = re.findall(r"\((\w+)\), process (\d+)", log(grid, store, heard.cell))
        if not lost:
            lost.append((heard.cell, process))
            os.kill(int(process), signal.SIGKILL)
        elif heard.cell != lost[0][0]:
            lost.append((heard.cell, node))
            nodes.remove(node)
            nodes.add()

    assert made(grid, store, listen, seconds=0.1) == []
    assert len(lost) == 2
    for cell, _ in lost:
        # both went on from where they had been saved
        said = log(grid, store, cell)
        assert "its worker died; it goes on" in said
        assert re.findall(r"training, step ([\d,]+) of", said)[-1] != "0"
    assert everything(store) == serial


def test_an_interrupt_saves(nodes: Nodes, grid: Sweep, tmp_path: Path) -> None:
    store = store_of(grid, tmp_path)
    stopped: set[int] = set()

    def interrupt(heard: Heard) -> None:
        if heard.what == "training" and 20 < heard.step < 400:
            stopped.add(heard.cell)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made(grid, store, interrupt)
    (cell,) = stopped
    config = grid.cells[cell].configs[0]
    step = RunFolder(store.runs / config.name, config).step()
    assert step is not None
    assert 20 < step < 1000
    assert "stopped, all is saved" in log(grid, store, cell)
    assert not units_there()


def test_a_driver_is_killed_and_another_finds_what_is_done_and_what_runs(
    nodes: Nodes, grid: Sweep, grid_file: Path, serial: list[list[Row]], tmp_path: Path
) -> None:
    from prlstm.distributed.cluster.engine import Engine, name_of
    from prlstm.distributed.cluster.places import Share

    store = store_of(grid, tmp_path)
    command = [sys.executable, "-m", "prlstm", "sweep", str(grid_file), "--device", "cpu",
               "--engine", "ray", "--address", nodes.address, "--out", str(store.results),
               "--runs", str(store.runs)]  # fmt: skip
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    for line in driver.stdout:
        # some are done, and this one is not
        if re.search(r": training, .* [2-4] of 6 cells done", line):
            break
    driver.kill()
    driver.communicate()
    running = units_there()
    assert running
    rows = (store.results / SCORES).read_bytes()
    # what runs is listened to, also by a driver that begins nothing
    heard: list[Heard] = []
    begun = {n for n, cell in enumerate(grid.cells) if name_of(cell, store) in running}
    idle = Engine(Share(1, 0)).work(grid.cells, lambda busy: None, store, CPU, heard.append)
    assert idle == []
    assert {one.cell for one in heard if one.what == "done"} == begun
    assert made(grid, store, heard.append) == []
    assert everything(store) == serial
    # nothing twice: what was done is untouched, and every unit began once
    assert (store.results / SCORES).read_bytes().startswith(rows)
    for cell in range(6):
        assert log(grid, store, cell).count(", process ") == 1
    assert len({one.cell for one in heard if one.what == "done"}) <= 4


def test_a_table_and_a_figure_are_made_there(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prlstm.distributed.cluster import connection, engine

    # this process is connected already
    monkeypatch.setattr(connection, "connected", lambda address: nullcontext("Ray"))
    one = ["--tasks", "parity_check", "--models", "lstm"]
    places = ["--out", str(tmp_path), "--runs", str(tmp_path / "runs")]
    table = [*TINY, *one, "--seeds", "1", "--steps", "20", *places]
    # no place is free for a while after the beginning
    real, known = engine.nodes, iter([True, True, False, False])
    monkeypatch.setattr(engine, "nodes", lambda: real() if next(known, True) else [])
    text = in_a_line(prlstm("reproduce", "table2", *table, "--engine", "ray"))
    assert "1 cell, 0 of them answered" in text
    assert "cpu on Ray (nodes: 2, units at a time: 2)" in text
    assert "LSTM on parity_check: done; 1 of 1 cell done" in text
    (row,) = read_results(tmp_path / SCORES)
    assert row["step"] == 20

    small = ["--hidden-size", "4", "--batch-size", "8", "--device", "cpu"]
    curve = [*small, *one, "--steps", "120", *places]
    text = in_a_line(prlstm("reproduce", "figure3", *curve, "--engine", "ray"))
    assert "LSTM on parity_check: done; 1 of 1 cell done" in text
    made_there = timeless(tmp_path / FIGURE3)
    (tmp_path / FIGURE3).unlink()
    prlstm("reproduce", "figure3", *curve[:-1], str(tmp_path / "here"))
    assert timeless(tmp_path / FIGURE3) == made_there
    assert made_there[0]["step"] == [100, 120]
    assert not units_there()


def test_storage_that_is_not_shared_is_named(
    nodes: Nodes, grid: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prlstm.distributed.cluster.storage.SEEN", 0.3)
    monkeypatch.chdir(tmp_path)
    # a path that is another place to every process
    own = Path("/proc/self/cwd")
    store = replace(store_of(grid, tmp_path), runs=own / "runs")
    begun = time.monotonic()
    with pytest.raises(
        OSError, match=r"(?s)storage.*node \S+ \(\w+\): /proc/self/cwd/runs: not shared"
    ):
        made(grid, store, lambda heard: None)
    assert time.monotonic() - begun < 40
    assert not units_there()
    # nor is it taken for the storage by a unit, on a node that comes after this was found out
    monkeypatch.setattr("prlstm.distributed.cluster.engine.check_storage", lambda *given: None)
    heard: list[Heard] = []
    one = replace(grid, cells=grid.cells[:1])
    wrong = "/proc/self/cwd/runs: not the storage of the others"
    with pytest.raises(OSError, match=f"{wrong}; no other node holds a unit"):
        made(one, store, heard.append)
    # it had gone to the other node as well
    (said,) = heard
    assert said.line is not None
    assert said.line.endswith(f"{wrong}; it is begun again elsewhere")
    assert log(one, store, 0).count(wrong) == 2
    assert not units_there()
