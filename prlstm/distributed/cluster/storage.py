"""Folders that all nodes of a cluster see: found out before anything is computed."""

import fcntl
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import ray
from ray import ObjectRef
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import prlstm
from prlstm.distributed.cluster.places import Node
from prlstm.experiments.runs import Store
from prlstm.files import write_whole

# says of a folder of runs which one it is, to nodes that come later too
MARK = ".shared"
# seconds: that a file may take to be seen elsewhere, and that a node may take to answer
SEEN, ANSWERED = 5.0, 60.0


@dataclass(frozen=True)
class Looked:
    """What a node found: its version of the package, and what is wrong with a folder."""

    version: str
    wrong: str | None


def absolute(store: Store) -> Store:
    """The same folders, as processes elsewhere can name them."""
    return replace(store, results=store.results.absolute(), runs=store.runs.absolute())


def mark(runs: Path) -> str:
    """What stands in the mark of a folder of runs, which is written if it is not there."""
    how = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    with os.fdopen(os.open(runs / MARK, how, 0o666), "r+") as file:
        # of two commands that begin at once the second reads what the first one wrote
        fcntl.flock(file, fcntl.LOCK_EX)
        known = file.read()
        if not known:
            known = secrets.token_hex(8)
            file.write(known)
            # to be there before the lock is free
            file.flush()
    return known


def is_seen(path: Path, contents: str) -> bool:
    """Whether a file with these contents is there, or comes within seconds."""
    ends = time.monotonic() + SEEN
    while True:
        try:
            if path.read_text() == contents:
                return True
        except OSError:
            # not there yet
            pass
        if time.monotonic() > ends:
            return False
        time.sleep(0.1)


def check_storage(store: Store, nodes: Sequence[Node]) -> None:
    """Let every node read, lock and write in the folders; those that cannot are named."""
    folders = list(dict.fromkeys((store.results, store.runs)))
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    token = secrets.token_hex(8)
    with ExitStack() as held:
        probes = [held.enter_context(_probe(folder, token)) for folder in folders]
        looking = ray.remote(num_cpus=0, max_retries=0)(look)
        answers = {}
        for node in nodes:
            there = NodeAffinitySchedulingStrategy(node.id, soft=False)
            asked = looking.options(scheduling_strategy=there)
            answers[node.id] = asked.remote([str(probe) for probe in probes], token, node.id)
        ends = time.monotonic() + ANSWERED
        wrong = []
        for node in nodes:
            why = _why_not(answers[node.id], max(0.0, ends - time.monotonic()))
            for reply in (_reply(probe, node.id) for probe in probes):
                if why is None and not is_seen(reply, token):
                    why = f"{reply.parent}: not shared: what is written there is not seen here"
                reply.unlink(missing_ok=True)
            if why is not None:
                wrong.append(f"node {node.host} ({node.id[:8]}): {why}")
    if wrong:
        raise OSError("\n".join(["the storage must be seen by all nodes", *wrong]))


def look(probes: Sequence[str], token: str, node: str) -> Looked:
    """What a node does: read and lock what the driver wrote, and write a reply beside it."""
    try:
        for probe in map(Path, probes):
            _look_at(probe, token, _reply(probe, node))
    except OSError as failed:
        return Looked(prlstm.__version__, str(failed))
    return Looked(prlstm.__version__, None)


def _look_at(probe: Path, token: str, reply: Path) -> None:
    folder = probe.parent
    if not is_seen(probe, token):
        raise OSError(f"{folder}: not shared: what the driver wrote there is not seen")
    # some file systems lock only what is open for writing
    with probe.open("r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        else:
            raise OSError(f"{folder}: a lock that the driver holds there is not seen")
    write_whole(reply, token.encode())


def _why_not(answer: "ObjectRef[Looked]", seconds: float) -> str | None:
    """What is wrong with a node."""
    try:
        looked: Looked = ray.get(answer, timeout=seconds)
    except GetTimeoutError:
        return f"it did not answer within {ANSWERED:.0f} s"
    except RayError as failed:
        return f"it cannot run this package ({str(failed).strip().splitlines()[-1]})"
    if looked.version != prlstm.__version__:
        return f"it has prlstm {looked.version}, expected {prlstm.__version__}"
    return looked.wrong


@contextmanager
def _probe(folder: Path, token: str) -> Iterator[Path]:
    """A file with a token, which is locked."""
    path = folder / f".probe-{token}"
    write_whole(path, token.encode())
    try:
        with path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield path
    finally:
        path.unlink(missing_ok=True)


def _reply(probe: Path, node: str) -> Path:
    return probe.with_name(f"{probe.name}-{node}")
