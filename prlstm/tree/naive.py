"""The definition of the tree: recursive, obvious, slow. Everything else is tested against it."""

from collections.abc import Callable, Sequence
from typing import TypeVar

S = TypeVar("S")


def block(merge: Callable[[S, S], S], leaves: Sequence[S]) -> S:
    """The perfect tree over `leaves`, whose number is a power of two."""
    if len(leaves) == 1:
        return leaves[0]
    half = len(leaves) // 2
    return merge(block(merge, leaves[:half]), block(merge, leaves[half:]))


def prefix_state(merge: Callable[[S, S], S], leaves: Sequence[S]) -> S:
    """P(n), the state after all n `leaves`.

    With `low` the smallest power of two in n's binary expansion, the last `low` leaves are a
    block, and everything before them is a prefix of its own.

    >>> prefix_state(lambda left, right: (left, right), [1, 2, 3, 4, 5, 6, 7])
    ((((1, 2), (3, 4)), (5, 6)), 7)
    """
    low = len(leaves) & -len(leaves)
    if low == len(leaves):
        return block(merge, leaves)
    return merge(prefix_state(merge, leaves[:-low]), block(merge, leaves[-low:]))


def tree_scan_naive(merge: Callable[[S, S], S], leaves: Sequence[S]) -> list[S]:
    """All prefixes P(1), ..., P(n), each computed from scratch."""
    return [prefix_state(merge, leaves[:n]) for n in range(1, len(leaves) + 1)]
