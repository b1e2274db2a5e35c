"""The ranks that share a sequence: what they tell each other, counted in bytes."""

import hashlib
import json
from collections.abc import Callable, Mapping

import torch
import torch.distributed as dist
from torch import Tensor

# bytes that tell how long a part is, how long the text of what a rank says of its arguments, and
# whether that text is the one of the others
NUMBER, DIGEST = 8, 16
HEADER = 2 * NUMBER + DIGEST
# of what ranks disagree in, so much is told
MOST_TOLD = 3

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
        text = json.dumps({"refused": str(said)} if refused else said).encode()
        headers = self.all_gather(_header(length, text, device), "comparing arguments").cpu()
        numbers = headers[:, : 2 * NUMBER].contiguous().view(torch.int64)
        digests = headers[:, 2 * NUMBER :]
        if refused or bool((digests != digests[0]).any()):
            # only now is it told in words, which may be long
            words = _as_bytes(text.ljust(int(numbers[:, 1].max())), device)
            rows = self.all_gather(words, "comparing arguments").tolist()
            raise _disagreement([json.loads(bytes(row)) for row in rows])
        return numbers[:, 0].tolist()

    def _together(self, call: Callable[[], object], what: str) -> None:
        try:
            call()
        except RuntimeError as lost:
            raise RuntimeError(
                f"{what}: rank {self.rank} of {self.world} lost the others; one has died, waits "
                f"elsewhere, or is late by more than the group's timeout ({lost})"
            ) from lost


def _header(length: int, text: bytes, device: torch.device) -> Tensor:
    numbers = b"".join(number.to_bytes(NUMBER, "little") for number in (length, len(text)))
    return _as_bytes(numbers + hashlib.blake2b(text, digest_size=DIGEST).digest(), device)


def _as_bytes(contents: bytes, device: torch.device) -> Tensor:
    return torch.frombuffer(bytearray(contents), dtype=torch.uint8).to(device)


def _disagreement(said: list[dict[str, object]]) -> ValueError:
    """The same error on every rank."""
    refused = [f"rank {rank} refused: {one['refused']}"
               for rank, one in enumerate(said) if "refused" in one]  # fmt: skip
    if refused:
        return ValueError("; ".join(refused[:MOST_TOLD]))
    parts = []
    for name in dict.fromkeys(name for one in said for name in one):
        first, *others = (one.get(name, "nothing") for one in said)
        for rank, other in enumerate(others, 1):
            if other != first:
                parts.append(f"{name}={first} on rank 0, {name}={other} on rank {rank}")
                break
    more = f"; and {len(parts) - MOST_TOLD} more" if len(parts) > MOST_TOLD else ""
    told = "; ".join(parts[:MOST_TOLD]) + more
    return ValueError(f"ranks disagree: {told}; expected the same on every rank")
