"""Whatever a user hands to the layer, as one padded batch; or an error that says what is wrong."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from prlstm.cells.precision import can_multiply
from prlstm.lengths import TIME, RowLengths, is_integer
from prlstm.tree.streams import Booleans

Lengths = Tensor | Sequence[int]
Output = str | tuple[int, int]
Active = Tensor | Sequence[bool] | Booleans
SEQUENCES = "(T, B, D), (B, T, D) with batch_first, or (T, D) for one sequence"


@dataclass(frozen=True)
class Batch:
    """A batch `x` (B, T, D), or ids (B, T) of one-hot tokens, and how the user laid it out."""

    x: Tensor
    # None where all rows are T long
    lengths: RowLengths | None
    batched: bool
    batch_first: bool
    packed: PackedSequence | None = None

    def check_type(self, weight: Tensor, name: str = "input") -> None:
        """Raise unless `x` can meet `weight`: same device, same type (half too under autocast)."""
        if self.x.device != weight.device:
            raise ValueError(
                f"{name} is on {self.x.device}: expected {weight.device}, where the weights are"
            )
        if is_ids(self.x):
            return
        if not can_multiply(self.x, weight):
            raise TypeError(
                f"{name} has type {self.x.dtype}: expected {weight.dtype}, as the weights have"
            )

    def rows(self, index: list[int]) -> "Batch":
        """Some rows of the batch."""
        lengths = None if self.lengths is None else self.lengths.rows(index)
        return replace(self, x=self.x[index], lengths=lengths)

    def trimmed(self) -> "Batch":
        """The batch without the positions that lie behind the end of every row."""
        if self.lengths is None:
            return self
        longest = max(self.lengths.host)
        return replace(self, x=self.x[:, :longest], lengths=self.lengths.clip(longest))

    def part(self, piece: range, rows: list[int]) -> "Batch":
        """A piece of those rows that do not end before it."""
        here = replace(self, x=self.x[:, piece.start : piece.stop])
        if self.lengths is None:
            return here
        if len(rows) < len(self.x):
            here = here.rows(rows)
        assert here.lengths is not None
        left = here.lengths.without(piece.start).clip(len(piece))
        return replace(here, lengths=left)

    def laid_out(self, out: Tensor) -> Tensor | PackedSequence:
        """Outputs (B, T, H) in the layout of the input."""
        if self.packed is not None:
            return _packed_like(self.packed, out, self.lengths)
        if not self.batched:
            return out.squeeze(0)
        return out if self.batch_first else out.transpose(0, 1)


@dataclass(frozen=True)
class Window:
    """Which positions are put out: `start <= t < stop`, or the last state alone."""

    start: int
    stop: int
    last: bool

    def within(self, length: int) -> "Window":
        """The part of the window that lies in a sequence of `length`, and one position at least."""
        return replace(self, start=min(self.start, length - 1), stop=min(self.stop, length))

    def part(self, piece: range) -> "Window":
        """The part of the window that lies in a piece, or the end of it where none does."""
        shifted = replace(self, start=max(0, self.start - piece.start), stop=len(piece))
        return shifted.within(len(piece))

    def fill(self, out: Tensor, start: int) -> Tensor:
        """`out` (B, n, H), which begins at `start`, cut or zero-padded to the window."""
        out = out[:, self.start - start :]
        missing = self.stop - self.start - out.shape[TIME]
        return F.pad(out, (0, 0, 0, missing)) if missing else out


def read_batch(
    input: Tensor | PackedSequence, lengths: Lengths | None, input_size: int, batch_first: bool
) -> Batch:
    """The input as a padded batch."""
    if isinstance(input, PackedSequence):
        if lengths is not None:
            raise ValueError(
                f"lengths={lengths}: expected none, a PackedSequence brings its own lengths"
            )
        _check_tokens(input.data, "input.data", (2,), input_size)
        x, true_lengths = pad_packed_sequence(input, batch_first=True)
        return Batch(x, RowLengths.read(true_lengths, x), True, batch_first, input)
    if not isinstance(input, Tensor):
        raise TypeError(f"input is a {type(input).__name__}: expected a tensor or PackedSequence")
    _check_tokens(input, "input", (2, 3), input_size)
    batched = input.dim() == 3 - is_ids(input)
    x = input.unsqueeze(0) if not batched else input if batch_first else input.transpose(0, 1)
    if x.shape[TIME] == 0:
        raise ValueError(
            f"input has shape {tuple(input.shape)}: the sequence is empty, expected T >= 1"
        )
    return Batch(x, RowLengths.read(lengths, x), batched, batch_first)


def read_tokens(x: Tensor, input_size: int) -> Batch:
    """One token for every row, as a batch of sequences of one."""
    if not isinstance(x, Tensor):
        raise TypeError(f"x is a {type(x).__name__}: expected a tensor")
    _check_tokens(x, "x", (1, 2), input_size, "(B, D), or (D,) for one sequence")
    batched = x.dim() == 2 - is_ids(x)
    return Batch(x.unsqueeze(TIME) if batched else x[None, None], None, batched, batch_first=True)


def read_active(active: Active | None, rows: int) -> Booleans | None:
    """Which rows have a token, on the host; None where all have."""
    if active is None:
        return None
    given = active.cpu().numpy() if isinstance(active, Tensor) else np.asarray(active)
    if given.dtype != np.bool_ or given.shape != (rows,):
        raise ValueError(
            f"active has type {given.dtype} and shape {given.shape}: "
            f"expected {rows} booleans, one for each row"
        )
    return given


def is_ids(x: Tensor) -> bool:
    """Whether these are ids of one-hot tokens, not the tokens themselves."""
    return not x.is_floating_point()


def read_window(output: Output, batch: Batch) -> Window:
    """The positions that `output` asks for."""
    length = batch.x.shape[TIME]
    if isinstance(output, str) and output in ("all", "last"):
        last = output == "last"
        return Window(length - 1 if last else 0, length, last)
    if not isinstance(output, tuple) or len(output) != 2 or not all(map(is_integer, output)):
        raise ValueError(f"output={output!r}: expected 'all', 'last' or (start, stop)")
    start, stop = map(operator.index, output)
    if not 0 <= start < stop <= length:
        raise ValueError(
            f"output={output!r}: expected (start, stop) with 0 <= start < stop <= T={length}"
        )
    if batch.packed is not None:
        raise ValueError(
            f"output={output!r}: a range of a PackedSequence is not a PackedSequence; "
            "pass a padded tensor and lengths"
        )
    return Window(start, stop, last=False)


def _check_tokens(
    x: Tensor, name: str, ranks: tuple[int, ...], input_size: int, expected: str = SEQUENCES
) -> None:
    """Raise unless these are tokens of `input_size` features, of one of these ranks, or ids."""
    if x.is_complex() or x.dtype == torch.bool:
        raise TypeError(f"{name} has type {x.dtype}: expected floating point, or integers for ids")
    if is_ids(x):
        if x.dim() + 1 not in ranks:
            allowed = " or ".join(str(rank - 1) for rank in ranks)
            raise ValueError(
                f"{name} holds integers, which are ids, and has shape {tuple(x.shape)}: expected "
                f"{allowed} dimensions, or floating point"
            )
        _check_ids(x, name, input_size)
    elif x.dim() not in ranks:
        raise ValueError(f"{name} has shape {tuple(x.shape)}: expected {expected}")
    elif x.shape[-1] != input_size:
        raise ValueError(
            f"{name} has shape {tuple(x.shape)}: expected {input_size} features (input_size) "
            f"in the last of {x.dim()} dimensions"
        )


def _check_ids(ids: Tensor, name: str, input_size: int) -> None:
    """Raise unless ids are below `input_size`; on a GPU nobody looks, that would wait for it."""
    if ids.device.type != "cpu" or torch.compiler.is_compiling() or not ids.numel():
        return
    low, high = (int(t) for t in ids.aminmax())
    if low < 0 or high >= input_size:
        wrong = low if low < 0 else high
        raise ValueError(f"{name} holds the id {wrong}: expected 0 <= id < input_size={input_size}")


def _packed_like(packed: PackedSequence, out: Tensor, lengths: RowLengths | None) -> PackedSequence:
    """`out`, in the user's order of rows, packed exactly as `packed` is."""
    rows, longest = out.shape[:2]
    # packed rows stand in the order of their lengths, the longest first
    falling = sorted((longest,) * rows if lengths is None else lengths.host, reverse=True)
    if packed.sorted_indices is not None:
        out = out.index_select(0, packed.sorted_indices)
    falling_tensor = torch.tensor(falling, device="cpu")
    data, batch_sizes, _, _ = pack_padded_sequence(out, falling_tensor, batch_first=True)
    return PackedSequence(data, batch_sizes, packed.sorted_indices, packed.unsorted_indices)
