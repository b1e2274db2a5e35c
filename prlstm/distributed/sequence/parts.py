"""Which part of a sequence each rank holds, and of which blocks of the tree it is made.

Integers only. A *part* is a range of the sequence; a *piece* of it is a perfect block of the tree
over the whole sequence. Blocks of different ranks meet in the tree exactly as they would on one
device, so the roots of the pieces are all that the ranks need to know of each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

# a part may be longer than an equal share by this factor, for the sake of fewer pieces
UNEVEN = 9 / 8
# the most pieces of a part: what a rank sends is bounded by it, whatever the length is
MOST_PIECES = 8


@dataclass(frozen=True)
class Piece:
    """The leaves `start .. stop - 1`, where a block of `2^level` begins: all of it, or less."""

    start: int
    stop: int
    level: int

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def is_whole(self) -> bool:
        """Whether it is a perfect block."""
        return len(self) == 1 << self.level


def partition(length: int, world: int) -> tuple[range, ...]:
    """A part of a sequence for each of `world` ranks: whole blocks, but for the end of the last.

    Blocks are as big as they can be while no part is longer than 9/8 of an equal share.

    >>> partition(1000, 4)
    (range(0, 256), range(256, 512), range(512, 768), range(768, 1000))
    >>> [len(part) for part in partition(1000, 3)]
    [352, 352, 296]
    """
    for name, value in (("length", length), ("world", world)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name}={value!r}: expected an integer >= 1")
    if world > length:
        raise ValueError(f"world={world}: expected at most length={length}, a token for each rank")
    level = length.bit_length()
    while True:
        blocks = _upwards(length, level)
        longest = _upwards(blocks, 0, world) << level
        if level == 0 or (blocks >= world and longest * world <= UNEVEN * length):
            break
        level -= 1
    counts = [blocks // world + (rank < blocks % world) for rank in range(world)]
    ends = [min(length, end << level) for end in accumulate(counts, initial=0)]
    return tuple(range(*ends) for ends in pairwise(ends))


def _upwards(number: int, level: int, by: int = 1) -> int:
    """`number` divided by `2^level` and by `by`, rounded upwards."""
    return -(-number // (by << level))


def pieces(start: int, stop: int, *, is_last: bool) -> tuple[Piece, ...]:
    """The greatest blocks of the tree that make up the leaves `start .. stop - 1`, in order.

    Nobody needs the last root of the last part: it may end with a block that is not whole.

    >>> [(piece.start, len(piece)) for piece in pieces(12, 24, is_last=False)]
    [(12, 4), (16, 8)]
    >>> [(piece.start, len(piece)) for piece in pieces(12, 23, is_last=True)]
    [(12, 4), (16, 7)]
    """
    found = []
    while start < stop:
        left = stop - start
        # the greatest block that begins here; all sizes do at the beginning of the sequence
        room = (start & -start).bit_length() - 1 if start else left.bit_length()
        above = (left - 1).bit_length()
        level = above if is_last and above <= room else min(room, left.bit_length() - 1)
        found.append(Piece(start, min(stop, start + (1 << level)), level))
        start = found[-1].stop
    return tuple(found)


def all_pieces(lengths: Sequence[int], seen: int = 0) -> tuple[tuple[Piece, ...], ...]:
    """The pieces of all parts, of these lengths, after `seen` earlier leaves; or an error."""
    ends = list(accumulate(lengths, initial=seen))
    found = tuple(
        pieces(start, stop, is_last=rank == len(lengths) - 1)
        for rank, (start, stop) in enumerate(pairwise(ends))
    )
    for rank, part in enumerate(found):
        if len(part) > MOST_PIECES:
            whole, world = ends[-1] - seen, len(lengths)
            better = ", ".join(str(len(one)) for one in partition(whole, world))
            after = f", after {seen} leaves" if seen else ""
            raise ValueError(
                f"parts of {_some(lengths)} tokens{after}: part {rank} is made of {len(part)} "
                f"blocks of the tree, expected at most {MOST_PIECES}; let parts be whole multiples "
                f"of a power of two, as distributed.partition({whole}, {world}) makes them"
                + (f" ({better})" if world <= 8 else "")
                + (", and go on from a state after such a multiple" if seen else "")
            )
    return found


def _some(numbers: Sequence[int]) -> str:
    """The first few."""
    return ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "")
