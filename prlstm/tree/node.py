"""Nodes: tuples of tensors that hold many states of a tree side by side along one dimension."""

from collections.abc import Callable

import torch
from torch import Tensor

# One state is a tuple of tensors, (h, c) say; a node array holds several of them along `dim`.
Node = tuple[Tensor, ...]
MergeFunction = Callable[[Node, Node], Node]


def size(node: Node, dim: int) -> int:
    """How many states stand side by side."""
    return node[0].shape[dim]


def take(node: Node, dim: int, start: int, stop: int, step: int = 1) -> Node:
    """The states `start, start + step, ...` before `stop`, as views."""
    if start == 0 and step == 1 and stop == size(node, dim):
        return node
    index = (slice(None),) * dim + (slice(start, stop, step),)
    return tuple(t[index] for t in node)


def last(node: Node, dim: int) -> Node:
    """The last state, with `dim` kept: a copy.

    It must not hold the memory of all the others, nor change when somebody writes to them.
    """
    n = size(node, dim)
    return tuple(t.clone() for t in take(node, dim, n - 1, n))


def concat(head: Node, tail: Node, dim: int) -> Node:
    """The states of `head`, then those of `tail`."""
    return tuple(torch.cat(pair, dim) for pair in zip(head, tail, strict=True))


def interleave(first: Node, second: Node, dim: int) -> Node:
    """first[0], second[0], first[1], ...; `first` holds as many states as `second`, or one more."""
    n = size(second, dim)
    if n == 0:
        return first
    paired = take(first, dim, 0, n)
    mixed = tuple(
        torch.stack(pair, dim + 1).flatten(dim, dim + 1)
        for pair in zip(paired, second, strict=True)
    )
    if size(first, dim) == n:
        return mixed
    return concat(mixed, take(first, dim, n, n + 1), dim)
