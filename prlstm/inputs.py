"""Whatever a user hands to the layer, as one padded batch; or an error that says what is wrong."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

Lengths = Tensor | Sequence[int]
Output = str | tuple[int, int]


@dataclass(frozen=True)
class Batch:
    """A batch `x` (B, T, D), and how the user laid it out."""

    x: Tensor
    # true length of every row; None where all are T
    lengths: tuple[int, ...] | None
    batched: bool
    batch_first: bool
    packed: PackedSequence | None = None

    def check_type(self, weight: Tensor) -> None:
        """Raise unless `x` can meet `weight`: same device, same type (any under autocast)."""
        if not self.x.is_floating_point():
            raise TypeError(
                f"input has type {self.x.dtype}: expected floating point, {weight.dtype}"
            )
        if self.x.device != weight.device:
            raise ValueError(
                f"input is on {self.x.device}: expected {weight.device}, where the weights are"
            )
        if self.x.dtype != weight.dtype and not torch.is_autocast_enabled(self.x.device.type):
            raise TypeError(
                f"input has type {self.x.dtype}: expected {weight.dtype}, as the weights have"
            )

    def rows(self, index: list[int]) -> "Batch":
        """Some rows of the batch."""
        lengths = self.lengths and tuple(self.lengths[row] for row in index)
        return replace(self, x=self.x[index], lengths=lengths)

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


def read_batch(
    input: Tensor | PackedSequence, lengths: Lengths | None, input_size: int, batch_first: bool
) -> Batch:
    """The input as a padded batch."""
    if isinstance(input, PackedSequence):
        if lengths is not None:
            raise ValueError(
                f"lengths={lengths}: expected none, a PackedSequence brings its own lengths"
            )
        _check_features(input.data, "input.data", 2, input_size)
        x, true_lengths = pad_packed_sequence(input, batch_first=True)
        return Batch(x, _unless_full(true_lengths.tolist(), x.shape[1]), True, batch_first, input)
    if not isinstance(input, Tensor):
        raise TypeError(
            f"input is a {type(input).__name__}: expected a floating-point tensor or PackedSequence"
        )
    if input.dim() not in (2, 3):
        layout = "(B, T, D)" if batch_first else "(T, B, D)"
        raise ValueError(
            f"input has shape {tuple(input.shape)}: expected {layout}, or (T, D) for one sequence"
        )
    _check_features(input, "input", input.dim(), input_size)
    batched = input.dim() == 3
    x = input.unsqueeze(0) if not batched else input if batch_first else input.transpose(0, 1)
    if x.shape[1] == 0:
        raise ValueError(
            f"input has shape {tuple(input.shape)}: the sequence is empty, expected T >= 1"
        )
    return Batch(x, _read_lengths(lengths, x), batched, batch_first)


def read_window(output: Output, batch: Batch) -> Window:
    """The positions that `output` asks for."""
    length = batch.x.shape[1]
    if isinstance(output, str):
        if output == "all":
            return Window(0, length, last=False)
        if output == "last":
            return Window(length - 1, length, last=True)
    elif isinstance(output, tuple) and len(output) == 2:
        start, stop = output
        if not all(isinstance(end, int) for end in output) or not 0 <= start < stop <= length:
            raise ValueError(
                f"output={output!r}: expected (start, stop) with 0 <= start < stop <= T={length}"
            )
        if batch.packed is not None:
            raise ValueError(
                f"output={output!r}: a range of a PackedSequence is not a PackedSequence; "
                "pass a padded tensor and lengths"
            )
        return Window(start, stop, last=False)
    raise ValueError(f"output={output!r}: expected 'all', 'last' or (start, stop)")


def _check_features(x: Tensor, name: str, rank: int, input_size: int) -> None:
    if x.dim() != rank or x.shape[-1] != input_size:
        raise ValueError(
            f"{name} has shape {tuple(x.shape)}: "
            f"expected {input_size} features (input_size) in the last of {rank} dimensions"
        )


def _read_lengths(lengths: Lengths | None, x: Tensor) -> tuple[int, ...] | None:
    if lengths is None:
        return None
    values = lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)
    if not isinstance(values, list) or not all(isinstance(n, int) for n in values):
        raise TypeError(f"lengths={lengths}: expected one integer for each row")
    rows, length = x.shape[:2]
    if len(values) != rows:
        raise ValueError(f"lengths={values}: expected {rows} of them, one for each row")
    for row, n in enumerate(values):
        if not 1 <= n <= length:
            raise ValueError(f"lengths[{row}]={n}: expected 1 <= length <= T={length}")
    return _unless_full(values, length)


def _unless_full(lengths: Sequence[int], length: int) -> tuple[int, ...] | None:
    return None if all(n == length for n in lengths) else tuple(lengths)


def _packed_like(
    packed: PackedSequence, out: Tensor, lengths: tuple[int, ...] | None
) -> PackedSequence:
    """`out`, in the user's order of rows, packed exactly as `packed` is."""
    true_lengths = torch.tensor(lengths or (out.shape[1],) * out.shape[0])
    if packed.sorted_indices is not None:
        out = out.index_select(0, packed.sorted_indices)
        true_lengths = true_lengths[packed.sorted_indices.cpu()]
    data, batch_sizes, _, _ = pack_padded_sequence(out, true_lengths, batch_first=True)
    return PackedSequence(data, batch_sizes, packed.sorted_indices, packed.unsorted_indices)
