"""Where states stand in memory, as the kernels are told of it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

# what begins at a multiple of so many bytes may be read by a descriptor
DESCRIPTOR_BYTES = 16


class States(NamedTuple):
    """Many states in one tensor, as a kernel finds them.

    `where` holds the strides of seed, batch and state, the place that strides count from, and
    the place of the first state, which may stand elsewhere.
    """

    tensor: Tensor
    where: tuple[int, int, int, int, int]

    @staticmethod
    def of(t: Tensor) -> "States":
        """All of `t` (S, B, L, size)."""
        dense = t if t.stride(-1) == 1 or t.shape[-1] == 1 else t.contiguous()
        seed, batch, state, _ = dense.stride()
        return States(dense, (seed, batch, state, 0, 0))


class Rows(NamedTuple):
    """Rows of `tensor` (S, R, columns), from `first` on: one for each state that is computed."""

    tensor: Tensor
    first: int


class Entries(NamedTuple):
    """A table whose entries are merged: `sums` (S, V, 2, C) and c.

    The sums are what an entry gives to the gates of a composition, as a left state with the bias,
    and as a right one. c stand in (S, states, H) from state `place` on.
    """

    sums: Tensor
    c: Tensor
    place: int


class Shape(NamedTuple):
    """How many states are computed: `length` for each of `batch` rows, of each seed."""

    seeds: int
    batch: int
    length: int

    @property
    def rows(self) -> int:
        """States of a seed."""
        return self.batch * self.length


class Counted(NamedTuple):
    """Of all rows the first ones alone: `counts[at]`, a number that the device knows.

    `likely` is about how many, for the choice of tiles. With `places` the left state of each row,
    or its token, is the one of that number where left states stand.
    """

    counts: Tensor
    at: int
    likely: int
    places: Tensor | None = None


def is_linear(arrays: Sequence[States], shape: Shape) -> bool:
    """Whether the states of all arrays follow one another, each array at one stride."""
    return all(
        w[3] == w[4] and (shape.batch == 1 or w[1] == shape.length * w[2]) for _, w in arrays
    )


def are_multiples(arrays: Sequence[States]) -> bool:
    """Whether all places and strides are multiples of 16 elements."""
    return not any(number % 16 for _, where in arrays for number in where)


class Joined(NamedTuple):
    """A descriptor of rows; how many there are for each seed, and for each row of the batch."""

    descriptor: Any
    each: int
    pairs: int


def joined(
    states: Sequence[States], size: int, shape: Shape, box: tuple[int, int]
) -> Joined | None:
    """One row for each merge, if its states stand side by side.

    There may be more rows than merges: at the end of a level a state may have no partner.
    """
    from triton.tools.tensor_descriptor import TensorDescriptor

    tensor, (seed, batch, step, start, begin) = states[0]
    for j, (other, where) in enumerate(states[1:], 1):
        at = start + j * size
        if other is not tensor or where != (seed, batch, step, at, at):
            return None
    bytes_each, width = tensor.element_size(), len(states) * size
    is_aligned = not (
        step * bytes_each % DESCRIPTOR_BYTES
        or (tensor.data_ptr() + start * bytes_each) % DESCRIPTOR_BYTES
    )
    if begin != start or step < width or not is_aligned or (shape.seeds > 1 and seed % step):
        return None
    pairs, rest = (shape.length, 0) if shape.batch == 1 else divmod(batch, step)
    if rest or not shape.length <= pairs <= shape.length + 1:
        return None
    each = seed // step if shape.seeds > 1 else 0
    # the last row may have no partner in memory either
    origin = tensor.storage_offset() + start
    there = tensor.untyped_storage().nbytes() // bytes_each - origin
    rows = min((shape.seeds - 1) * each + shape.batch * pairs, (there - width) // step + 1)
    base = tensor.as_strided((1,), (1,), origin)
    return Joined(TensorDescriptor(base, [rows, width], [step, 1], list(box)), each, pairs)


def described(
    states: Sequence[States], size: int, shape: Shape, box: tuple[int, int]
) -> Any | None:
    """The descriptor alone, if there is a row for each merge and no more."""
    found = joined(states, size, shape, box) if states else None
    return None if found is None or found.pairs != shape.length else found.descriptor
