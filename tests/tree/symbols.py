"""Trees as numbers: every different pair of ids gets an id of its own."""

import torch

from prlstm.tree import Node


class Symbols:
    """A merge on integer ids that hash-conses pairs, and counts what it is asked."""

    def __init__(self) -> None:
        self.ids: dict[tuple[int, int], int] = {}
        self.calls = 0
        self.merges = 0

    def pair(self, left: int, right: int) -> int:
        # leaves are small, so an id can be told from a leaf
        return self.ids.setdefault((left, right), 1_000_000 + len(self.ids))

    def merge(self, left: Node, right: Node) -> Node:
        (a,), (b,) = left, right
        assert a.shape == b.shape
        self.calls += 1
        self.merges += a.numel()
        pairs = zip(a.flatten().tolist(), b.flatten().tolist(), strict=True)
        return (torch.tensor([self.pair(x, y) for x, y in pairs]).view(a.shape),)

    def reset(self) -> None:
        self.calls = self.merges = 0
