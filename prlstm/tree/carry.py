"""What a stream keeps between two pieces of a sequence: a binary counter of blocks."""

from dataclasses import dataclass

from prlstm.tree.node import Node


@dataclass(frozen=True)
class Carry:
    """All of a sequence that later leaves can still meet, after `count` leaves.

    For every binary digit 1 of `count`, say at level k, `blocks[k]` is the block of 2^k leaves
    that waits for a partner, and `folds[k]` the prefix that ends with it. Digits 0 hold `None`.
    That is at most 2 (floor(log2 count) + 1) states. Each keeps the tree's dimension, of size 1.
    """

    count: int = 0
    blocks: tuple[Node | None, ...] = ()
    folds: tuple[Node | None, ...] = ()

    @staticmethod
    def leaf(node: Node) -> "Carry":
        """A stream that has seen one leaf."""
        return Carry(1, (node,), (node,))

    def block(self, level: int) -> Node:
        """The block that waits at `level`."""
        node = self.blocks[level]
        assert node is not None, f"no block waits at level {level} after {self.count} leaves"
        return node

    def fold(self, level: int) -> Node:
        """The prefix over all blocks of `level` and above."""
        for node in self.folds[level:]:
            if node is not None:
                return node
        raise AssertionError(f"no prefix at or above level {level} after {self.count} leaves")
