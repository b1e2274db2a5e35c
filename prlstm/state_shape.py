"""What a state must be to fit a layer and a batch; or an error that says what is wrong."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from prlstm.cells.precision import can_multiply, wide_type
from prlstm.state import State
from prlstm.tree import Carry

# What `torch.nn.LSTM` calls a state: (h_0, c_0), or h_0 alone where the cell has no c.
PlainState = Tensor | tuple[Tensor, ...]


@dataclass(frozen=True)
class StateShape:
    """The states that a layer takes with a batch."""

    cell: str
    layers: int
    directions: int
    rows: int
    batched: bool
    # of the tensors of one state of the cell, h first
    sizes: tuple[int, ...]
    # what errors call it
    name: str = "hx"

    def first_carries(self, hx: PlainState | None, weight: Tensor) -> list[Carry]:
        """Where to begin, for each layer and direction: nowhere, or with `hx` as one leaf."""
        if hx is None:
            return [Carry()] * (self.layers * self.directions)
        if not isinstance(hx, (Tensor, tuple, list)):
            raise TypeError(
                f"{self.name} is a {type(hx).__name__}: expected a State, or (h_0, c_0)"
            )
        parts = (hx,) if isinstance(hx, Tensor) else tuple(hx)
        self._check_tensors(parts, weight)
        for index, part in enumerate(parts):
            # only the cell itself may have put something else beside h
            if not part.is_floating_point():
                raise TypeError(
                    f"{self.name}[{index}] has type {part.dtype}: expected {weight.dtype}"
                )
        if not self.batched:
            parts = tuple(t.unsqueeze(1) for t in parts)
        # (layers * directions, B, H) to one leaf (B, 1, H) each
        leaves = zip(*(t.unsqueeze(2).unbind(0) for t in parts), strict=True)
        return [Carry.leaf(leaf) for leaf in leaves]

    def check(self, hx: State, weight: Tensor) -> None:
        """Raise unless the layer can go on from `hx`."""
        if self.directions == 2 or not hx.pending:
            whose = "this layer is" if self.directions == 2 else "the layer it came from was"
            raise ValueError(
                f"{self.name}={hx!r}: cannot be continued, {whose} bidirectional, and the reverse "
                "direction of a sequence begins at its end; a plain (h_0, c_0) is accepted"
            )
        if hx.cell != self.cell:
            raise ValueError(
                f"{self.name}={hx!r}: a state of cell {hx.cell!r}, expected {self.cell!r}"
            )
        if hx.batched != self.batched:
            kinds = ("of one unbatched sequence", "of a batch")
            raise ValueError(
                f"{self.name}={hx!r}: a state {kinds[hx.batched]}, "
                f"expected one {kinds[self.batched]}"
            )
        self._check_tensors(tuple(hx), weight)

    def _check_tensors(self, tensors: Sequence[Tensor], weight: Tensor) -> None:
        """Raise unless `tensors` could be this layer's (h_n, c_n)."""
        for index, tensor in enumerate(tensors):
            if not isinstance(tensor, Tensor):
                raise TypeError(
                    f"{self.name}[{index}] is of type {type(tensor).__name__}: expected a tensor "
                    "(lengths, if that is what you passed, go by name: lengths=...)"
                )
        if len(tensors) != len(self.sizes):
            raise ValueError(
                f"{self.name} holds {len(tensors)} tensor{'s' * (len(tensors) != 1)}: "
                f"a state of cell {self.cell!r} has {len(self.sizes)}"
            )
        rows = (self.rows,) if self.batched else ()
        for index, (tensor, size) in enumerate(zip(tensors, self.sizes, strict=True)):
            shape = (self.layers * self.directions, *rows, size)
            if tuple(tensor.shape) != shape:
                raise ValueError(
                    f"{self.name}[{index}] has shape {tuple(tensor.shape)}: expected {shape}, "
                    f"(layers * directions{', batch' if self.batched else ''}, hidden size)"
                )
            if tensor.device != weight.device:
                raise ValueError(
                    f"{self.name}[{index}] is on {tensor.device}: expected {weight.device}, "
                    "where the weights are"
                )
            # h is multiplied with the weights; what stands beside it may be wider, as c is, or
            # no number of that kind at all
            wider = index > 0 and (
                tensor.dtype == wide_type(weight.dtype) or not tensor.is_floating_point()
            )
            if not (can_multiply(tensor, weight) or wider):
                raise TypeError(
                    f"{self.name}[{index}] has type {tensor.dtype}: expected {weight.dtype}, "
                    f"as the weights have{' (or float32)' * (index > 0)}"
                )
