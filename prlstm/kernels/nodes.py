"""The states of a sweep in memory: h and c of all blocks, level by level, and of all prefixes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor

from prlstm.kernels import launch
from prlstm.kernels.layout import PREFIXES, Array, Layout
from prlstm.kernels.places import States

Pair = tuple[Tensor, Tensor]


@dataclass
class Nodes:
    """Each level of `blocks` and `prefixes` is an h and a c, (S, B, states, H).

    Blocks are either views of `together`, the memory of all levels (S, states of all, H), or made
    when their level begins and dropped when nobody needs them; `behind` counts for each level the
    blocks that were dropped.
    """

    layout: Layout
    prefixes: Pair
    together: Pair | None
    blocks: dict[int, Pair] = field(default_factory=dict)
    behind: dict[int, int] = field(default_factory=dict)

    @staticmethod
    def of(layout: Layout, together: Pair, prefixes: Pair) -> "Nodes":
        """All levels in the memory of all."""
        batch = prefixes[0].shape[1]
        nodes = Nodes(layout, prefixes, together)
        for level, (offset, size) in enumerate(zip(layout.offsets, layout.sizes, strict=True)):
            h, c = (
                t[:, batch * offset : batch * (offset + size)].view(
                    t.shape[0], batch, size, t.shape[2]
                )
                for t in together
            )
            nodes.blocks[level] = h, c
        return nodes

    def begin(self, level: int) -> None:
        """Memory for the blocks of a level."""
        if level not in self.blocks:
            h, c = self.prefixes
            shape = (*h.shape[:2], self.layout.sizes[level], h.shape[3])
            self.blocks[level] = launch.empty(h, shape), launch.empty(c, shape)

    def end(self, level: int) -> None:
        """Blocks above are made: drop those that nobody needs, all or all but the last."""
        if self.together is not None or not self.layout.needs_last_alone(level):
            return
        if level not in self.layout.pending:
            del self.blocks[level]
        elif level not in self.behind:
            last = self.layout.counts[level] - 1
            self.put_last(level, *(t[:, :, last, None].clone() for t in self.blocks[level]))

    def put_last(self, level: int, h: Tensor, c: Tensor) -> None:
        """Nothing of a level but its last block, (S, B, 1, H)."""
        self.blocks[level], self.behind[level] = (h, c), self.layout.counts[level] - 1

    def pair(self, level: int) -> Pair:
        """H and c of the blocks of a level, or of all prefixes."""
        return self.prefixes if level == PREFIXES else self.blocks[level]

    def at(self, array: Array) -> tuple[States, States]:
        """H and c of an array, as a kernel finds them."""
        h, c = self.pair(array.level)
        behind = self.behind.get(array.level, 0)
        return _states(h, array, behind), _states(c, array, behind)

    def last(self, level: int) -> Pair:
        """The last block of a level, (S, B, 1, H)."""
        h, c = self.blocks[level]
        place = self.layout.counts[level] - 1 - self.behind.get(level, 0)
        return h[:, :, place : place + 1], c[:, :, place : place + 1]

    def bring(self, carried: Sequence[Tensor]) -> None:
        """Put what an earlier part of the stream left where it belongs.

        h and c of the waiting blocks, then of the prefixes that are needed: (S, B, 1, H) each.
        """
        states = iter(carried)
        for level in self.layout.waiting:
            self.begin(level)
            self._put(level, 0, next(states), next(states))
        for slot, _ in self.layout.from_folds:
            self._put(PREFIXES, slot, next(states), next(states))

    def _put(self, level: int, place: int, h: Tensor, c: Tensor) -> None:
        for t, value in zip(self.pair(level), (h, c), strict=True):
            size = value.shape[-1]
            t[:, :, place, :size].copy_(value[:, :, 0])
            if size < t.shape[-1]:
                t[:, :, place, size:].zero_()


def _states(t: Tensor, array: Array, behind: int) -> States:
    size = t.shape[-1]
    start, first = array.start - behind, array.first - behind
    where = (array.step * size, start * size, first * size)
    return States(t, (t.stride(0), t.stride(1), *where))


def compact(t: Tensor, row: int, length: int) -> States:
    """Rows from `row` on of `t` (S, R, size), `length` of them for each row of the batch."""
    size = t.shape[-1]
    return States(t, (t.stride(0), length * size, size, row * size, row * size))
