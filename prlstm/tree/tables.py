"""Blocks of few different tokens: computed once each, and looked up.

A block of 2^k tokens out of V has at most V^(2^k) values, whatever the merge is. So the low levels
of a long tree are tables, and the merges left are those of the levels above.
"""

from torch import Tensor

from prlstm.tree.node import MergeFunction, Node, size
from prlstm.tree.plan import Plan
from prlstm.tree.rows import fold_rows, pick
from prlstm.tree.scan import EMPTY, up_sweep

# tables hold at most one entry for so many blocks that are looked up in them
SHARE = 16


def tree_reduce_tokens(
    merge: MergeFunction, alphabet: Node, tokens: Tensor, lengths: Tensor
) -> Node:
    """Every row's prefix P(lengths[row]) of `tokens` (B, T), with the states `alphabet` (V, ...).

    What `tree_reduce_rows` gives for the states of all tokens, for fewer merges.

    >>> import torch
    >>> merge = lambda left, right: (left[0] - right[0],)
    >>> tokens = torch.tensor([[0, 1, 2], [0, 1, 2]])
    >>> tree_reduce_tokens(merge, (torch.tensor([1, 2, 3]),), tokens, torch.tensor([3, 2]))
    (tensor([-4, -1]),)
    """
    tables, codes = [alphabet], [tokens]
    while size(tables[-1], 0) ** 2 * SHARE <= tokens.numel() and codes[-1].shape[1] > 1:
        entries = size(tables[-1], 0)
        tables.append(_all_pairs(merge, tables[-1]))
        pairs = codes[-1][:, : codes[-1].shape[1] // 2 * 2]
        codes.append(pairs[:, 0::2] * entries + pairs[:, 1::2])
    top = len(tables) - 1
    leaves = tuple(entry[codes[top]] for entry in tables[top])
    blocks = up_sweep(merge, leaves, 1, Plan(size(leaves, 1)).levels, EMPTY)
    state: Node | None = None
    for level in reversed(range(top + len(blocks))):
        count = lengths >> level
        if level >= top:
            block = pick(blocks[level - top], count - 1)
        else:
            (code,) = pick((codes[level],), count - 1)
            block = tuple(entry[code] for entry in tables[level])
        state = fold_rows(merge, state, block, count)
    assert state is not None
    return state


def _all_pairs(merge: MergeFunction, table: Node) -> Node:
    """The merges of all entries with all: (V * V, ...), the left one counting by V."""
    entries = size(table, 0)
    left = tuple(entry.repeat_interleave(entries, 0) for entry in table)
    right = tuple(entry.repeat(entries, *[1] * (entry.dim() - 1)) for entry in table)
    return merge(left, right)
