"""The bracketing itself: what the tree is, for every length up to 130."""

import pytest
import torch

from prlstm.tree import Plan, bracketing, tree_reduce, tree_scan, tree_scan_naive
from prlstm.tree.naive import prefix_state
from tests.tree.symbols import Symbols

LENGTHS = range(1, 131)


def written(tree: object) -> str:
    if isinstance(tree, tuple):
        left, right = tree
        return f"({written(left)} {written(right)})"
    return str(tree)


def blocks_of(n: int) -> list[tuple[int, int]]:
    """The power-of-two blocks of n, biggest first, as (first leaf, size)."""
    blocks, first = [], 1
    for bit in reversed(range(n.bit_length())):
        if n >> bit & 1:
            blocks.append((first, 1 << bit))
            first += 1 << bit
    return blocks


def balanced(first: int, size: int) -> object:
    if size == 1:
        return first
    return (balanced(first, size // 2), balanced(first + size // 2, size // 2))


@pytest.mark.parametrize("n", LENGTHS)
def test_definition_is_the_left_fold_of_perfect_blocks(n: int) -> None:
    tree, *rest = (balanced(first, size) for first, size in blocks_of(n))
    for block in rest:
        tree = (tree, block)
    assert prefix_state(lambda a, b: (a, b), list(range(1, n + 1))) == tree
    assert bracketing(n) == written(tree)


@pytest.mark.parametrize(
    ("n", "tree"),
    [
        (1, "1"),
        (2, "(1 2)"),
        (3, "((1 2) 3)"),
        (5, "(((1 2) (3 4)) 5)"),
        (6, "(((1 2) (3 4)) (5 6))"),
        (7, "((((1 2) (3 4)) (5 6)) 7)"),
        (8, "(((1 2) (3 4)) ((5 6) (7 8)))"),
    ],
)
def test_small_trees_as_the_paper_draws_them(n: int, tree: str) -> None:
    assert written(prefix_state(lambda a, b: (a, b), list(range(1, n + 1)))) == tree


@pytest.mark.parametrize("n", LENGTHS)
def test_batched_code_builds_the_same_trees(n: int) -> None:
    symbols = Symbols()
    want = tree_scan_naive(symbols.pair, list(range(1, n + 1)))
    leaves = (torch.arange(1, n + 1),)
    assert tree_scan(symbols.merge, leaves, dim=0)[0].tolist() == want
    plan = Plan(n)
    assert (symbols.calls, symbols.merges) == (len(plan.steps), plan.merges)
    symbols.reset()
    assert tree_reduce(symbols.merge, leaves, dim=0)[0].item() == want[-1]
    assert symbols.merges == n - 1
