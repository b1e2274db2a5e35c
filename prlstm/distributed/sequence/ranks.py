"""The ranks that share a sequence: what they tell each other, counted in bytes."""

import json
from collections.abc import Callable, Mapping

import torch
import torch.distributed as dist
from torch import Tensor

# bytes of what a rank says of its arguments before anything is computed
HEADER = 512

Said = Mapping[str, str | int | bool]


class Ranks:
    """A process group, and how many bytes this rank has handed to it for others to read.

    `group=None` is the group of all processes. Every call is one collective, so all ranks must
    make the same calls in the same order.
    """

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        if not dist.is_available() or not dist.is_initialized():
            raise RuntimeError(
                "torch.distributed has no process group: expected a call of "
                "torch.distributed.init_process_group before"
            )
        self.group = group
        self.rank, self.world = dist.get_rank(group), dist.get_world_size(group)
        if self.rank < 0:
            raise ValueError(f"group={group}: expected a group that this process belongs to")
        self.sent_bytes = 0

    def all_gather(self, tensor: Tensor, what: str) -> Tensor:
        """The tensors (...) of all ranks: (world, ...)."""
        made = tensor.new_empty(self.world, *tensor.shape)
        mine = tensor.contiguous()
        self._together(lambda: dist.all_gather(list(made), mine, self.group), what)
        self.sent_bytes += mine.nbytes
        return made

    def all_to_all(self, tensor: Tensor, what: str) -> Tensor:
        """What every rank has for this one: of `tensor` (world, ...) each rank gets its own row."""
        made, mine = torch.empty_like(tensor), tensor.contiguous()
        self._together(lambda: dist.all_to_all_single(made, mine, group=self.group), what)
        self.sent_bytes += mine.nbytes - mine[0].nbytes
        return made

    def all_sum(self, tensor: Tensor, what: str) -> None:
        """The sum over all ranks, in place."""
        self._together(lambda: dist.all_reduce(tensor, group=self.group), what)
        self.sent_bytes += tensor.nbytes

    def agree(
        self, length: int, said: Said | ValueError | TypeError, device: torch.device
    ) -> list[int]:
        """The length of every rank's part, after all have said the same of everything else.

        A rank that has refused its own arguments says so; where one has, or where two say
        different things, all ranks raise the same `ValueError`.
        """
        refused = isinstance(said, Exception)
        text = json.dumps({"refused": str(said)} if refused else said)
        headers = self.all_gather(_header(length, text, device), "comparing shapes").cpu()
        lengths = headers[:, :8].contiguous().view(torch.int64)[:, 0].tolist()
        texts = headers[:, 8:]
        if refused or bool((texts != texts[0]).any()):
            raise _disagreement([json.loads(_text(row)) for row in texts])
        return lengths

    def _together(self, call: Callable[[], object], what: str) -> None:
        try:
            call()
        except RuntimeError as lost:
            raise RuntimeError(
                f"{what}: rank {self.rank} of {self.world} lost the others; one has died, waits "
                f"elsewhere, or is late by more than the group's timeout ({lost})"
            ) from lost


def _header(length: int, text: str, device: torch.device) -> Tensor:
    room = HEADER - 8
    while len(text) > room:
        # a long refusal is cut, and stays what JSON can read
        refused = json.loads(text)["refused"]
        text = json.dumps({"refused": refused[: len(refused) * 9 // 10] + "..."})
    written = length.to_bytes(8, "little") + text.encode().ljust(room)
    return torch.frombuffer(bytearray(written), dtype=torch.uint8).to(device)


def _text(row: Tensor) -> str:
    return bytes(row.tolist()).decode()


def _disagreement(said: list[dict[str, object]]) -> ValueError:
    """The same error on every rank."""
    refused = [(rank, one["refused"]) for rank, one in enumerate(said) if "refused" in one]
    if refused:
        return ValueError("; ".join(f"rank {rank} refused: {why}" for rank, why in refused[:3]))
    parts = []
    for name, first in said[0].items():
        others = {rank: one[name] for rank, one in enumerate(said) if one[name] != first}
        if others:
            rank, other = next(iter(others.items()))
            parts.append(f"{name}={first} on rank 0, {name}={other} on rank {rank}")
    return ValueError(f"ranks disagree: {'; '.join(parts)}; expected the same on every rank")
