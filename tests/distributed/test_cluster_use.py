"""What is wrong with a cluster, or with what is asked of it: named before anything is computed."""

import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import pytest

from prlstm.experiments.runs import Store
from prlstm.report.rows import CURVES
from tests.cli.command import TINY, in_a_line, prlstm

pytest.importorskip("ray")

from prlstm.distributed.cluster import connection, engine, storage
from prlstm.distributed.cluster.places import (
    Node,
    Share,
    alive,
    share_alone,
    usual_share,
    with_places,
)


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    path = tmp_path / "grid.toml"
    path.write_text('task = "parity_check"\nmodel = "rnn"\nhidden_size = 4\nsteps = 20\n')
    return path


def closed_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--address", "auto"], "Invalid value for --address: auto: expected --engine ray too"),
        (["--cpus-per-unit", "2"], "Invalid value for --cpus-per-unit: 2: expected --engine ray"),
        (["--gpus-per-unit", "0.5"], "--gpus-per-unit: 0.5: expected --engine ray too"),
        (["--engine", "ray", "--jobs", "2"], "for --jobs: 2: a Ray cluster makes as many as it"),
        (["--engine", "ray", "--device", "cuda:1"], "'cuda:1': expected auto, cpu or cuda, Ray"),
        (["--engine", "dask"], "'dask' is not one of 'local', 'ray'"),
        (["--engine", "ray", "--gpus-per-unit", "1.5"], "--gpus-per-unit"),
    ],
)
def test_wrong_options(grid: Path, arguments: list[str], message: str) -> None:
    assert message in in_a_line(prlstm("sweep", grid, *arguments, code=2))
    small = [*TINY, "--tasks", "parity_check", "--models", "rnn", "--steps", "20"]
    assert message in in_a_line(prlstm("reproduce", "table2", *small, *arguments, code=2))
    assert "--jobs" in arguments or message in in_a_line(
        prlstm("reproduce", "figure3", *arguments, code=2)
    )


def test_without_ray(grid: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("prlstm.distributed.cluster.")]:
        monkeypatch.delitem(sys.modules, name)
    package = sys.modules["prlstm.distributed.cluster"]
    for name in ("connection", "engine", "places"):
        monkeypatch.delattr(package, name, raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    text = prlstm("sweep", grid, "--engine", "ray", code=1)
    assert "--engine ray needs the package ray: pip install 'prlstm[ray]'" in in_a_line(text)


@pytest.mark.parametrize("address", ["head", "head:port", "head:0", ":6379", "ray://head:10001"])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(ValueError, match="expected auto, or host:port as in head:6379"):
        connection.find(address)


def test_an_address_where_nobody_is(grid: Path, tmp_path: Path) -> None:
    address, begun = f"127.0.0.1:{closed_port()}", time.monotonic()
    runs = tmp_path / "runs"
    arguments = ["--engine", "ray", "--address", address, "--runs", runs, "--out", runs]
    text = in_a_line(prlstm("sweep", grid, *arguments, code=1))
    assert f"--address {address}: nothing answers there (Connection refused)" in text
    assert time.monotonic() - begun < 15
    assert not runs.exists()
    with pytest.raises(ConnectionError, match=r"no\.such\.host\.invalid:6379: nothing answers"):
        connection.find("no.such.host.invalid:6379")


def test_an_address_where_somebody_else_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "ANSWERED", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ConnectionError, match=f"{address}: no Ray cluster answered within 1 s"):
            connection.find(address)


def test_folders_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = Store(tmp_path / "results", tmp_path / "file" / "runs", CURVES)
    with pytest.raises(OSError, match=r"file"):
        storage.check_storage(store, [])
    store = Store(Path("/proc/results"), tmp_path / "runs", CURVES)
    with pytest.raises(OSError, match="/proc/results"):
        storage.check_storage(store, [])


def test_what_a_node_says_of_storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "SEEN", 0.2)
    probe = tmp_path / ".probe-token"
    nothing = storage.look([str(probe)], "token", "n")
    assert nothing.wrong == f"{tmp_path}: not shared: what the driver wrote there is not seen"
    probe.write_text("other")
    assert storage.look([str(probe)], "token", "n") == nothing
    # nobody holds the lock, as far as this node sees
    probe.write_text("token")
    free = storage.look([str(probe)], "token", "n")
    assert free.wrong == f"{tmp_path}: a lock that the driver holds there is not seen"
    probe.unlink()
    with storage._probe(tmp_path, "token") as held:
        assert storage.look([str(held)], "token", "n").wrong is None
        assert (tmp_path / ".probe-token-n").read_text() == "token"
        # a folder that is in the way of what is written
        (tmp_path / ".probe-token-m").mkdir()
        said = storage.look([str(held)], "token", "m").wrong
        assert said is not None
        assert "Is a directory" in said
    assert not held.exists()


def test_a_mark_stays(tmp_path: Path) -> None:
    first = storage.mark(tmp_path)
    assert len(first) == 16
    assert storage.mark(tmp_path) == first


def test_commands_that_begin_at_once_agree_on_a_mark(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        for n in range(50):
            folder = tmp_path / str(n)
            folder.mkdir()
            marks = set(pool.map(storage.mark, [folder] * 4))
            assert marks == {(folder / storage.MARK).read_text()}


def test_a_head_that_is_gone_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"127.0.0.1:{closed_port()}"
    monkeypatch.setattr(connection, "find", lambda address: address)
    monkeypatch.setattr(connection, "LOOK", 0.01)
    monkeypatch.setattr(connection.ray, "init", lambda **given: None)
    # what Ray has kept back
    monkeypatch.setattr(connection.ray, "shutdown", lambda: sys.stderr.write("(raylet) died"))
    with connection.connected(address):
        time.sleep(0.3)
    said = capsys.readouterr().err
    assert said.startswith(f"The Ray cluster at {address} does not answer.")
    assert said.endswith("type the same command: it goes on from what is saved.\n")


def test_a_dry_run_counts_for_what_would_work(
    grid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dry = ["--engine", "ray", "--dry-run"]
    on = "on cpu on a Ray cluster here one after the other: 0:00, and 1 of unknown time"
    assert on in in_a_line(prlstm("sweep", grid, *dry, "--device", "cpu"))
    # as the run would
    address = f"127.0.0.1:{closed_port()}"
    text = in_a_line(prlstm("sweep", grid, *dry, "--address", address, code=1))
    assert f"--address {address}: nothing answers there" in text
    # a cluster with GPUs, seen from a machine that has none
    monkeypatch.setattr(connection, "connected", lambda address: nullcontext("the cluster"))
    monkeypatch.setattr(engine, "nodes", lambda: [Node("a", "a", {"CPU": 8.0, "GPU": 1.0})])
    text = in_a_line(prlstm("sweep", grid, *dry, "--address", address))
    assert "on cuda on the cluster (nodes: 1, units at a time: 4) one after the other" in text
    assert f"a short run tells it (steps = 1000 in {grid})" in text
    one = ["--tasks", "parity_check", "--models", "lstm"]
    for name in ("table2", "figure3"):
        text = in_a_line(prlstm("reproduce", name, *one, *dry, "--address", address))
        assert "on cuda on the cluster (nodes: 1," in text
        assert "1 of unknown time: a short run tells it (--steps 1000)" in text


def test_places() -> None:
    assert Share(1, 0).places({"CPU": 8.0, "GPU": 2.0}) == 8
    assert Share(3, 0).places({"CPU": 8.0}) == 2
    assert Share(1, 0.25).places({"CPU": 8.0, "GPU": 2.0}) == 8
    assert Share(1, 0.3).places({"CPU": 64.0, "GPU": 2.0}) == 6
    assert Share(1, 0.1).places({"CPU": 64.0, "GPU": 1.0}) == 10
    assert Share(1, 1).places({"CPU": 64.0}) == 0
    assert usual_share(False, None, None) == Share(1, 0)
    assert usual_share(True, 2, None) == Share(2, 0.25)
    with pytest.raises(ValueError, match=r"--gpus-per-unit 0: expected more than 0"):
        usual_share(True, None, 0)
    with pytest.raises(ValueError, match=r"--gpus-per-unit 0\.5: expected 0 on the processors"):
        usual_share(False, None, 0.5)


def test_places_of_what_is_timed() -> None:
    nodes = [Node(name, name, {"CPU": cpus}) for name, cpus in (("a", 2.0), ("b", 16.0))]
    assert share_alone(False, None, None, nodes) == Share(16, 0)
    assert share_alone(False, 2, None, nodes) == Share(2, 0)
    assert share_alone(True, None, None, nodes) == Share(1, 1)
    assert share_alone(True, None, 0.5, nodes) == Share(1, 0.5)
    # a cluster without processors is refused as any that is too small
    with pytest.raises(ValueError, match="no node holds a unit of 1 CPUs"):
        with_places([], share_alone(False, None, None, []))


def test_a_cluster_that_is_too_small() -> None:
    listed = [
        {"Alive": alive, "Resources": {"CPU": cpus}, "NodeID": host, "NodeManagerHostname": host}
        for host, cpus, alive in (("a", 2.0, True), ("b", 64.0, False), ("c", 4.0, True))
    ]
    nodes = alive(listed)
    assert nodes == [Node("a", "a", {"CPU": 2.0}), Node("c", "c", {"CPU": 4.0})]
    assert [node.host for node in with_places(nodes, Share(3, 0))] == ["c"]
    message = r"8 CPUs and 0 of a GPU: the cluster has a: 2 CPUs, 0 GPUs; c: 4 CPUs, 0 GPUs"
    with pytest.raises(ValueError, match=message):
        with_places(nodes, Share(8, 0))
    with pytest.raises(ValueError, match="no nodes"):
        with_places([], Share(1, 0))
