"""Cells made as units on a Ray cluster, by a driver that may end and begin again."""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import ray
import torch
from ray.exceptions import RayError
from ray.util import list_named_actors
from ray.util.scheduling_strategies import NodeLabelSchedulingStrategy, NotIn

from prlstm.distributed.cluster.places import Node, Share, alive, with_places
from prlstm.distributed.cluster.storage import absolute, check_storage, mark
from prlstm.distributed.cluster.unit import MisplacedError, Order, Said, Unit, log_of
from prlstm.experiments.crew import WAITING, Choice, Heard, Listener
from prlstm.experiments.runs import Store, Wanted
from prlstm.training import Request

# seconds: between two questions to a unit; for units to save and end, or to be there at all; for
# rows to be seen here; without an answer, after which a unit is said to wait for a place
EVERY, SAVED, THERE, SEEN, SILENT = 0.3, 120.0, 5.0, 60.0, 10.0
# how often a unit is begun again after its worker or its node died
RESTARTS = 20


@dataclass(frozen=True)
class Engine:
    """What makes cells on the cluster that this process is connected to."""

    share: Share

    def work(
        self,
        cells: Sequence[Wanted],
        choose: Choice,
        store: Store,
        device: torch.device,
        listen: Listener,
    ) -> list[str]:
        """Make what is chosen, as many at a time as there are places; as `crew.work`.

        Units that work already are listened to. An interrupt lets all save, and is raised again.
        """
        whole = absolute(store)
        check_storage(whole, with_places(nodes(), self.share))
        return _Driver(self.share, cells, choose, whole, device, listen).work()


def nodes() -> list[Node]:
    """The nodes of the cluster."""
    listed: Callable[[], Any] = ray.nodes
    return alive(listed())


def name_of(cell: Wanted, store: Store) -> str:
    """The name by which any driver of a cluster finds the unit of a cell."""
    content = [str(store.results), str(store.runs), [config.name for config in cell.configs]]
    return hashlib.blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()


@dataclass
class _Active:
    """A unit that works, or waits for a place; `answer` is to come of what it was asked last."""

    actor: Any
    request: Request | None
    answer: Any
    is_heard: bool = False
    asked: float = field(default_factory=time.monotonic)


class _Driver:
    """Begins units, listens to them, and tells."""

    def __init__(
        self,
        share: Share,
        cells: Sequence[Wanted],
        choose: Choice,
        store: Store,
        device: torch.device,
        listen: Listener,
    ) -> None:
        self.share, self.cells, self.choose, self.store = share, cells, choose, store
        self.device, self.listen, self.mark = device, listen, mark(store.runs)
        self.busy: dict[int, _Active] = {}
        self.failures: dict[int, str] = {}
        # nodes that do not see the storage
        self.shunned: set[str] = set()
        # to choose means to read all rows: once more after something ended
        self.is_all_chosen = False

    def work(self) -> list[str]:
        """Keep all places of the cluster busy."""
        try:
            self._adopt()
            while True:
                self._fill()
                if self.is_all_chosen and not self.busy:
                    return list(self.failures.values())
                self._hear()
        except (KeyboardInterrupt, MisplacedError):
            self._stop()
            raise

    def _adopt(self) -> None:
        """Listen to the units of these cells that another driver began."""
        there = set(list_named_actors())
        for number, cell in enumerate(self.cells):
            if (name := name_of(cell, self.store)) in there:
                try:
                    self._add(number, ray.get_actor(name))
                except ValueError:
                    # it ended meanwhile
                    continue

    def _fill(self) -> None:
        """Begin units while there are places, and cells to make; one may wait for a place."""
        places = max(1, self._places())
        while not self.is_all_chosen and len(self.busy) < places:
            chosen = self.choose(self.busy.keys() | self.failures.keys())
            if chosen is None:
                self.is_all_chosen = True
            else:
                self._begin(*chosen)

    def _places(self) -> int:
        """How many units the cluster holds now."""
        fit = [node for node in nodes() if node.id not in self.shunned]
        return sum(self.share.places(node.resources) for node in fit)

    def _begin(self, number: int, request: Request) -> None:
        elsewhere: Any = "DEFAULT"
        if self.shunned:
            others = NotIn(*self.shunned)  # type: ignore[no-untyped-call]
            elsewhere = NodeLabelSchedulingStrategy(hard={"ray.io/node-id": others})
        cell = self.cells[number]
        threads = self.share.cpus
        order = Order(cell, request, self.store, str(self.device), threads, self.mark)
        actor = (
            ray.remote(Unit)
            .options(
                name=name_of(cell, self.store),
                # it outlives this driver; of two drivers one begins it, both listen
                lifetime="detached",
                get_if_exists=True,
                num_cpus=self.share.cpus,
                num_gpus=self.share.gpus,
                scheduling_strategy=elsewhere,
                max_restarts=RESTARTS,
                # what was asked of a worker that died is asked of the next one
                max_task_retries=-1,
            )
            .remote(order)
        )
        self._add(number, actor, request)

    def _add(self, number: int, actor: Any, request: Request | None = None) -> None:
        self.busy[number] = _Active(actor, request, actor.tell.remote())

    def _hear(self) -> None:
        """What units say, and which of them ended."""
        begun = time.monotonic()
        for number, said in self._answers(EVERY):
            for line in said.lines:
                self.listen(Heard(number, "", line=line))
            if said.heard is not None and said.ended is None:
                self.listen(replace(said.heard, cell=number))
            if said.ended == "done":
                self._end(number, self._why_missing(number, said.request))
            elif said.ended == "misplaced":
                self._misplaced(number, said)
            elif said.ended is not None:
                # if stopped, another driver did it
                self._end(number, said.why or said.ended)
        for number, one in self.busy.items():
            if time.monotonic() - one.asked > SILENT:
                self.listen(Heard(number, WAITING))
        time.sleep(max(0.0, begun + EVERY - time.monotonic()))

    def _answers(self, seconds: float) -> list[tuple[int, Said]]:
        """What units answered; those that are dead for good are done with."""
        numbers = {one.answer: n for n, one in self.busy.items() if one.answer is not None}
        ready, _ = ray.wait(list(numbers), num_returns=len(numbers), timeout=seconds)
        found = []
        for answer in ready:
            number = numbers[answer]
            one = self.busy[number]
            try:
                said: Said = ray.get(answer)
            except RayError as died:
                self._died(number, str(died).strip())
                continue
            one.request, one.is_heard = said.request, True
            # nothing is asked of what ends now: Ray would warn that nobody answered
            one.answer = one.actor.tell.remote() if said.ended is None else None
            one.asked = time.monotonic()
            found.append((number, said))
        return found

    def _died(self, number: int, why: str) -> None:
        """A unit was begun again too often, or another driver ended it when it was done."""
        request = self.busy[number].request
        if request is None or not self._is_missing(number, request):
            self._end(number, None)
            return
        self._write(number, f"the unit died: {why}")
        self._end(number, f"it died: {why.splitlines()[0]}")

    def _misplaced(self, number: int, said: Said) -> None:
        """A unit came to a node without the storage, one that joined later: it goes elsewhere."""
        self.shunned.add(said.node)
        self._write(number, said.why)
        self._kill(number)
        if not self._places():
            raise MisplacedError(f"{said.why}; no other node holds a unit")
        self.listen(Heard(number, "", line=f"{said.why}; it is begun again elsewhere"))

    def _write(self, number: int, line: str) -> None:
        """What a unit cannot write into its log."""
        log = log_of(self.cells[number], self.store)
        log.parent.mkdir(exist_ok=True)
        with log.open("a") as file:
            file.write(f"{line}\n")

    def _why_missing(self, number: int, request: Request) -> str | None:
        """What is wrong if the rows of a unit that is done are not there."""
        ends = time.monotonic() + SEEN
        while self._is_missing(number, request):
            if time.monotonic() > ends:
                return f"it is done, but its rows are not seen in {self.store.results}"
            time.sleep(EVERY)
        return None

    def _is_missing(self, number: int, request: Request) -> bool:
        """Whether a cell is not answered by rows that another node may have just written."""
        with suppress(FileNotFoundError):
            # shared storage shows what others wrote to those who open a file
            self.store.answering.open("rb").close()
        return bool(self.store.missing(self.cells[number], request))

    def _end(self, number: int, why: str | None) -> None:
        """A unit is no more: all is well, or not."""
        self._kill(number)
        if why is None:
            self.listen(Heard(number, "done"))
            return
        cell = self.cells[number]
        line = f"{why}; its log: {log_of(cell, self.store)}"
        self.failures[number] = f"{cell.name}: {line}"
        self.listen(Heard(number, "failed", line=line))

    def _kill(self, number: int) -> None:
        ray.kill(self.busy.pop(number).actor, no_restart=True)
        self.is_all_chosen = False

    def _stop(self) -> None:
        """Let all units save, and end them; those that wait for a place have nothing to save."""
        begun = time.monotonic()
        try:
            for one in self.busy.values():
                one.actor.stop.remote()
            while self._is_saving(begun):
                self._answers(EVERY)
                time.sleep(EVERY)
        finally:
            for one in self.busy.values():
                ray.kill(one.actor, no_restart=True)

    def _is_saving(self, begun: float) -> bool:
        """Whether a unit that was asked to stop may still say that it did."""
        spent = time.monotonic() - begun
        asked = [one for one in self.busy.values() if one.answer is not None]
        return spent < SAVED and any(one.is_heard or spent < THERE for one in asked)
