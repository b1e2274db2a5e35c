"""A carry that goes on by whole blocks: what earlier ranks hold, as a stream would have kept it."""

from collections import defaultdict
from collections.abc import Sequence

import torch

from prlstm.lengths import TIME
from prlstm.tree import Carry, MergeFunction, Node
from prlstm.tree.node import take
from prlstm.tree.scan import checked_merge

# a block of 2^level leaves: its level and its state (B, 1, ...)
Root = tuple[int, Node]


def extended(merge: MergeFunction, carry: Carry, roots: Sequence[Root]) -> Carry:
    """The carry after `roots` as well, one after the other; each begins at a multiple of its size.

    Blocks that are neighbours are merged level by level, all pairs of a level at once.
    """
    if not roots:
        return carry
    # at every level the blocks at hand, by their number
    found: defaultdict[int, dict[int, Node]] = defaultdict(dict)
    for level, block in enumerate(carry.blocks):
        if block is not None:
            found[level][(carry.count >> level) - 1] = block
    count = carry.count
    for level, root in roots:
        assert count % (1 << level) == 0, f"no block of level {level} begins at {count}"
        found[level][count >> level] = root
        count += 1 << level
    for level in range(count.bit_length()):
        found[level + 1].update(_paired(merge, found[level]))
    blocks: list[Node | None] = []
    for level in range(count.bit_length()):
        rest = list(found[level].values())
        assert len(rest) == count >> level & 1, f"{len(rest)} blocks wait at level {level}"
        blocks.append(rest[0] if rest else None)
    return Carry(count, tuple(blocks), _folds(merge, carry, blocks))


def _paired(merge: MergeFunction, blocks: dict[int, Node]) -> dict[int, Node]:
    """Blocks of the level above, of all neighbours that make one up; these are taken out."""
    pairs = [j for j in blocks if j % 2 == 0 and j + 1 in blocks]
    if not pairs:
        return {}
    left, right = (_side_by_side([blocks.pop(j + side) for j in pairs]) for side in (0, 1))
    made = checked_merge(merge, left, right)
    return {j // 2: take(made, TIME, n, n + 1) for n, j in enumerate(pairs)}


def _folds(
    merge: MergeFunction, earlier: Carry, blocks: Sequence[Node | None]
) -> tuple[Node | None, ...]:
    """The prefixes that end with the blocks that wait."""
    folds: list[Node | None] = [None] * len(blocks)
    fold: Node | None = None
    for level in reversed(range(len(blocks))):
        block = blocks[level]
        if block is None:
            continue
        if level < len(earlier.blocks) and block is earlier.blocks[level]:
            # where a block still waits, all above it has not changed either
            fold = earlier.fold(level)
        else:
            fold = block if fold is None else checked_merge(merge, fold, block)
        folds[level] = fold
    return tuple(folds)


def _side_by_side(nodes: Sequence[Node]) -> Node:
    return tuple(torch.cat(tensors, TIME) for tensors in zip(*nodes, strict=True))
