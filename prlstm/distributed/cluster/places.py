"""How much of a node a unit takes, and how many of them a cluster holds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

# a GPU is shared by so many units unless told otherwise: one alone does not fill it
SHARED_BY = 4


@dataclass(frozen=True)
class Share:
    """What a unit takes: whole processors, and all or a part of one GPU.

    >>> Share(2, 0.25).places({"CPU": 16.0, "GPU": 1.0})
    4
    """

    cpus: int
    gpus: float

    def __post_init__(self) -> None:
        if self.cpus < 1:
            raise ValueError(f"--cpus-per-unit {self.cpus}: expected at least 1")
        if not 0 <= self.gpus <= 1:
            raise ValueError(
                f"--gpus-per-unit {self.gpus}: expected a share of one GPU, from 0 to 1"
            )

    def places(self, resources: Mapping[str, float]) -> int:
        """How many units a node holds."""
        by_cpus = int(resources.get("CPU", 0.0)) // self.cpus
        if not self.gpus:
            return by_cpus
        each = int(1 / self.gpus + 1e-9)
        return min(by_cpus, int(resources.get("GPU", 0.0)) * each)


@dataclass(frozen=True)
class Node:
    """A node of a cluster that is alive."""

    id: str
    host: str
    resources: Mapping[str, float]


def usual_share(is_cuda: bool, cpus: int | None, gpus: float | None) -> Share:
    """What a unit takes unless told otherwise: a processor, and on a GPU a quarter of that."""
    if gpus is None:
        gpus = 1 / SHARED_BY if is_cuda else 0.0
    if is_cuda and not gpus:
        raise ValueError("--gpus-per-unit 0: expected more than 0, or --device cpu")
    if gpus and not is_cuda:
        raise ValueError(f"--gpus-per-unit {gpus:g}: expected 0 on the processors of nodes")
    return Share(1 if cpus is None else cpus, gpus)


def share_alone(
    is_cuda: bool, cpus: int | None, gpus: float | None, nodes: Sequence[Node]
) -> Share:
    """The same for a unit whose time is a result: a whole GPU, or all processors of a node."""
    if is_cuda:
        return usual_share(True, cpus, 1.0 if gpus is None else gpus)
    most = max((int(node.resources.get("CPU", 0.0)) for node in nodes), default=0)
    return usual_share(False, max(1, most) if cpus is None else cpus, gpus)


def alive(nodes: Iterable[Mapping[str, object]]) -> list[Node]:
    """Those nodes that are alive, of `ray.nodes()`."""
    found = []
    for node in nodes:
        resources = node["Resources"]
        if node["Alive"] and isinstance(resources, Mapping):
            found.append(Node(str(node["NodeID"]), str(node["NodeManagerHostname"]), resources))
    return found


def with_places(nodes: Iterable[Node], share: Share) -> list[Node]:
    """Those nodes that hold a unit, or an error that tells the greatest there is."""
    nodes = list(nodes)
    fitting = [node for node in nodes if share.places(node.resources)]
    if fitting:
        return fitting
    known = [
        f"{node.host}: {node.resources.get('CPU', 0):.0f} CPUs, "
        f"{node.resources.get('GPU', 0):.0f} GPUs"
        for node in nodes
    ]
    raise ValueError(
        f"no node holds a unit of {share.cpus} CPUs and {share.gpus:g} of a GPU: "
        f"the cluster has {'; '.join(known) or 'no nodes'}"
    )
