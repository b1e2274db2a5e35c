"""A long batch, read piece by piece as a stream is: memory does not grow with its length."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from prlstm.inputs import Batch, Window
from prlstm.lengths import TIME
from prlstm.state import State, join
from prlstm.tree import Carry

# h (B, positions, H) in a window of a batch that goes on after carries, and the state after it
Read = Callable[[Batch, list[Carry], Window], tuple[Tensor, State]]


def read_in_pieces(
    read: Read, batch: Batch, carries: list[Carry], window: Window, pieces: Sequence[range]
) -> tuple[Tensor, State]:
    """What `read` gives for the whole batch; a row is not read behind its end."""
    if len(pieces) == 1:
        return read(batch, carries, window)
    every = len(batch.x)
    rows, outs = list(range(every)), []
    # rows that ended in an earlier piece
    order: list[int] = []
    ended: list[State] = []
    for piece in pieces:
        out, state = read(batch.part(piece, rows), carries, window.part(piece))
        if window.start < piece.stop:
            outs.append(_spread(out, rows, every))
        if piece.stop == pieces[-1].stop:
            break
        if batch.lengths is not None:
            goes_on = [batch.lengths.host[row] > piece.stop for row in rows]
            if not all(goes_on):
                ended.append(state.rows([not on for on in goes_on]))
                order += [row for row, on in zip(rows, goes_on, strict=True) if not on]
                rows = [row for row, on in zip(rows, goes_on, strict=True) if on]
                state = state.rows(goes_on)
        assert isinstance(state.seen, int)
        carries = [pending.carry(state.seen) for pending in state.pending]
    if ended:
        order += rows
        state = join([*ended, state], sorted(range(every), key=order.__getitem__))
    return torch.cat(outs, TIME), state


def _spread(out: Tensor, rows: list[int], every: int) -> Tensor:
    """The outputs of some rows among those of all: zeros where a row has ended."""
    if len(rows) == every:
        return out
    index = torch.tensor(rows, device=out.device)
    return out.new_zeros(every, *out.shape[1:]).index_copy(0, index, out)
