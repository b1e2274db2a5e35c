"""One padded batch read in one direction or in both."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from prlstm.dispatch import Reader
from prlstm.lengths import TIME, RowLengths, pick, reverse_rows
from prlstm.tree import Carry, Node, Sweep
from prlstm.tree.rows import Pending, pending_at, prefix_at


@dataclass(frozen=True)
class Run:
    """What one direction of one layer gave.

    `h` (B, positions put out, H) is zero behind a row's end.
    """

    h: Tensor
    done: Sweep
    lengths: RowLengths | None

    @property
    def seen(self) -> int | tuple[int, ...]:
        """Leaves behind the rows, the earlier ones included; one number where all agree."""
        plan = self.done.plan
        if self.lengths is None:
            return plan.count + plan.length
        return tuple(plan.count + n for n in self.lengths.host)

    @property
    def final(self) -> Node:
        """Every row's state after its last token: tensors (B, H)."""
        if self.lengths is None:
            return tuple(t[:, -1] for t in self.done.read)
        return prefix_at(self.done, self.lengths.tensor + self.done.plan.count)

    @property
    def pending(self) -> Pending:
        """What every row needs to go on."""
        if self.lengths is None:
            carry = self.done.carry()
            return Pending(carry.blocks, carry.folds)
        return pending_at(self.done, self.seen, self.lengths.tensor + self.done.plan.count)


def run(
    reader: Reader,
    x: Tensor,
    lengths: RowLengths | None,
    earlier: Carry,
    start: int,
    *,
    every: bool = False,
) -> Run:
    """Read `x` (B, T, D), or ids (B, T), from left to right; put out the positions from `start` on.

    With `every`, all nodes of the tree are kept.
    """
    if lengths is None:
        done = reader.sweep(x, earlier, start, every=every)
        # of a range, or with padded features, the kernels give a view
        return Run(done.read[0].contiguous(), done, None)
    # a row that ends before `start` has a final state all the same
    first = min(start, min(lengths.host) - 1)
    done = reader.sweep(x, earlier, first, every=True)
    behind = lengths.behind(start, x.shape[TIME])
    return Run(done.read[0][:, start - first :].masked_fill(behind, 0), done, lengths)


def _to_end(reader: Reader, x: Tensor, lengths: RowLengths | None, earlier: Carry) -> Run:
    """Read `x` for the sake of the final states alone."""
    if lengths is not None:
        return run(reader, x, lengths, earlier, x.shape[TIME] - 1)
    done = reader.sweep_to_end(x, earlier)
    return Run(done.read[0].contiguous(), done, None)


def run_both(
    reader: Reader,
    reverse: Reader,
    x: Tensor,
    lengths: RowLengths | None,
    earlier: tuple[Carry, Carry],
    read: range | None,
    *,
    every: bool = False,
) -> tuple[Run, Run]:
    """Read `x` from left to right and, with another reader, every row from its own end.

    The forward direction reads up to the last position of `read`, the reverse one down to the
    first (or one token, where a row ends before): what the outputs there need, and no more.
    With None both read everything, for the sake of their final states alone.
    """
    length, back = x.shape[TIME], reverse_rows(x, lengths)
    if read is None:
        return _to_end(reader, x, lengths, earlier[0]), _to_end(reverse, back, lengths, earlier[1])
    clipped = None if lengths is None else lengths.clip(read.stop)
    forward = run(reader, x[:, : read.stop], clipped, earlier[0], read.start, every=every)
    if lengths is None:
        needed = back[:, : length - read.start]
        first = length - read.stop
        backward = run(reverse, needed, None, earlier[1], first, every=every)
        return forward, replace(backward, h=backward.h.flip(TIME))
    # position t of a row of n tokens is the (n - 1 - t)th that this direction reads
    left = lengths.without(read.start)
    first = max(0, min(lengths.host) - read.stop)
    backward = run(reverse, back[:, : max(left.host)], left, earlier[1], first)
    turned = _turned(backward.h, lengths, first, read)
    return forward, replace(backward, h=turned)


def _turned(h: Tensor, lengths: RowLengths, first: int, read: range) -> Tensor:
    """What the reverse direction put out from its `first` position on, at the positions `read`."""
    position = torch.arange(read.start, read.stop, device=h.device)
    source = (lengths.tensor[:, None] - 1 - position - first).clamp(0, h.shape[TIME] - 1)
    return pick(h, source).masked_fill(lengths.behind(read.start, read.stop), 0)
