"""One cell over one padded batch, in one direction or in both."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from prlstm.cells import Cell
from prlstm.tree import Carry, Node, Sweep, sweep
from prlstm.tree.rows import Pending, pending_at, prefix_at

# Batches are (rows, time, features).
TIME = 1
RowLengths = tuple[int, ...] | None


@dataclass(frozen=True)
class Run:
    """What one direction of one layer gave.

    `h` (B, positions read, H) is zero behind a row's end.
    """

    h: Tensor
    done: Sweep
    # the count at which every row ends, where they are not all the same
    ends: RowLengths

    @property
    def counts(self) -> tuple[int, ...]:
        """Leaves behind every row, the earlier ones included."""
        plan = self.done.plan
        return self.ends or (plan.count + plan.length,) * self.h.shape[0]

    @property
    def final(self) -> Node:
        """Every row's state after its last token: tensors (B, H)."""
        if self.ends is None:
            return tuple(t[:, -1] for t in self.done.read)
        return prefix_at(self.done, torch.tensor(self.ends, device=self.h.device))

    @property
    def pending(self) -> Pending:
        """What every row needs to go on."""
        if self.ends is None:
            carry = self.done.carry()
            return Pending(carry.blocks, carry.folds)
        return pending_at(self.done, self.ends, torch.tensor(self.ends, device=self.h.device))


def run(cell: Cell, x: Tensor, lengths: RowLengths, earlier: Carry, start: int) -> Run:
    """Read `x` (B, T, D) from left to right; put out the positions from `start` on."""
    leaves = cell.leaf(x)
    if lengths is None:
        done = sweep(cell.merge, leaves, TIME, earlier, start)
        return Run(done.read[0], done, None)
    # a row that ends before `start` has a final state all the same
    first = min(start, min(lengths) - 1)
    done = sweep(cell.merge, leaves, TIME, earlier, first)
    position = torch.arange(start, x.shape[TIME], device=x.device)
    behind = position >= torch.tensor(lengths, device=x.device)[:, None]
    h = done.read[0][:, start - first :].masked_fill(behind[..., None], 0)
    return Run(h, done, tuple(earlier.count + n for n in lengths))


def run_both(
    cell: Cell,
    reverse: Cell,
    x: Tensor,
    lengths: RowLengths,
    earlier: tuple[Carry, Carry],
    read: range | None,
) -> tuple[Run, Run]:
    """Read `x` from left to right and, with another cell, every row from its own end.

    The forward direction reads up to the last position of `read`, the reverse one down to the
    first: what the outputs there need, and no more. With None both read everything, for the
    sake of their final states alone.
    """
    length, back = x.shape[TIME], reverse_rows(x, lengths)
    if read is None:
        last = length - 1
        return run(cell, x, lengths, earlier[0], last), run(
            reverse, back, lengths, earlier[1], last
        )
    forward = run(cell, x[:, : read.stop], clip(lengths, read.stop), earlier[0], read.start)
    if lengths is None:
        needed = back[:, : length - read.start]
        backward = run(reverse, needed, None, earlier[1], length - read.stop)
        return forward, replace(backward, h=backward.h.flip(TIME))
    # every row reads something, for the sake of its final state
    backward = run(reverse, back, tuple(max(1, n - read.start) for n in lengths), earlier[1], 0)
    h = reverse_rows(backward.h, lengths)[:, read.start : read.stop]
    return forward, replace(backward, h=h)


def clip(lengths: RowLengths, stop: int) -> RowLengths:
    """Row lengths when only the first `stop` positions are there; None where all rows fill them."""
    if lengths is None or min(lengths) >= stop:
        return None
    return tuple(min(n, stop) for n in lengths)


def reverse_rows(x: Tensor, lengths: RowLengths) -> Tensor:
    """Every row of `x` (B, T, ...) back to front up to its own length; padding stays in place."""
    if lengths is None:
        return x.flip(TIME)
    position = torch.arange(x.shape[TIME], device=x.device)
    length = torch.tensor(lengths, device=x.device)[:, None]
    source = torch.where(position < length, length - 1 - position, position)
    return x[torch.arange(x.shape[0], device=x.device)[:, None], source]
