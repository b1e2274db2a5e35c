"""Where the cells of a table are made: in this process and others here, or on a Ray cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal

import torch
import typer

from prlstm.cli.given import read_device
from prlstm.experiments.crew import Work, work

EngineName = Annotated[
    Literal["local", "ray"],
    typer.Option("--engine", help="local: on this machine; ray: on the nodes of a Ray cluster."),
]
Address = Annotated[
    str | None,
    typer.Option(
        help="With Ray: a cluster as host:port, or auto. (one that is started here, and ends)",
        show_default=False,
    ),
]
CpusPerUnit = Annotated[
    int | None,
    typer.Option(
        min=1, help="With Ray: processors for the seeds of a cell. (1)", show_default=False
    ),
]
GpusPerUnit = Annotated[
    float | None,
    typer.Option(
        min=0, max=1, help="With Ray: the share of a GPU. (0.25 on a GPU)", show_default=False
    ),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Only list what is left to do, and how long that took before."),
]


@dataclass(frozen=True)
class Engine:
    """What makes cells, on which kind of device; `place` is how a person calls it."""

    work: Work
    device: torch.device
    place: str


def local(device: torch.device, jobs: int) -> Engine:
    """This process, or so many others on this machine."""
    return Engine(partial(work, jobs=jobs), device, str(device))


@dataclass(frozen=True)
class EngineAsked:
    """An engine as it was typed."""

    name: str
    address: str | None
    cpus: int | None
    gpus: float | None
    jobs: int
    device: str

    def __post_init__(self) -> None:
        given = {
            "--address": self.address,
            "--cpus-per-unit": self.cpus,
            "--gpus-per-unit": self.gpus,
        }
        for option, value in given.items():
            if self.name != "ray" and value is not None:
                raise typer.BadParameter(f"{value}: expected --engine ray too", param_hint=option)
        if self.name == "ray" and self.jobs != 1:
            raise typer.BadParameter(
                f"{self.jobs}: a Ray cluster makes as many as it holds; expected --cpus-per-unit "
                "or --gpus-per-unit",
                param_hint="--jobs",
            )
        if self.name == "ray" and self.device not in ("auto", "cpu", "cuda"):
            raise typer.BadParameter(
                f"{self.device!r}: expected auto, cpu or cuda, Ray chooses which one",
                param_hint="--device",
            )

    def device_here(self) -> torch.device:
        """The device as this machine knows it; nodes may have what it has not."""
        if self.name == "local" or self.device == "auto":
            return read_device(self.device)
        return torch.device(self.device)

    @contextmanager
    def started(self, *, is_timed: bool = False, is_dry: bool = False) -> Iterator[Engine]:
        """The engine, connected to what it works on; where cells are timed, none has neighbours.

        A dry run starts no cluster: one that would be started here has what this machine has.
        """
        if self.name == "local":
            yield local(self.device_here(), self.jobs)
            return
        if is_dry and self.address is None:
            device = self.device_here()
            yield replace(local(device, 1), place=f"{device.type} on a Ray cluster here")
            return
        try:
            # Ray is there for those who ask for it
            from prlstm.distributed.cluster import connection, engine, places
        except ModuleNotFoundError as missing:
            if missing.name != "ray":
                raise
            raise ModuleNotFoundError(
                "--engine ray needs the package ray: pip install 'prlstm[ray]'"
            ) from None
        with connection.connected(self.address) as cluster:
            nodes = engine.nodes()
            has_gpus = any(node.resources.get("GPU") for node in nodes)
            device = torch.device("cuda" if has_gpus else "cpu")
            if self.device != "auto":
                device = torch.device(self.device)
            given = device.type == "cuda", self.cpus, self.gpus
            share = places.share_alone(*given, nodes) if is_timed else places.usual_share(*given)
            fitting = places.with_places(nodes, share)
            units = sum(share.places(node.resources) for node in fitting)
            size = f"nodes: {len(fitting)}, units at a time: {units}"
            place = f"{device.type} on {cluster} ({size})"
            yield Engine(engine.Engine(share).work, device, place)
