"""PR-LSTM in NumPy, written from the paper's equations: one sequence, one state at a time."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Weights = Mapping[str, Array]
HC = tuple[Array, Array]


def sigmoid(a: Array) -> Array:
    return 1 / (1 + np.exp(-a))


def affine(w: Weights, block: str, rows: slice, z: Array) -> Array:
    """One of the paper's Linear maps: some rows of a block's weight."""
    return w[f"{block}.weight"][rows] @ z + w[f"{block}.bias"][rows]


def forget_add_activate(fc: list[HC], i: Array, u: Array, o: Array) -> HC:
    c = i * u + sum((f * c for f, c in fc), np.zeros_like(i))
    return o * np.tanh(c), c


def embed(w: Weights, x: Array) -> HC:
    size = len(w["leaf.bias"]) // 3
    i, o = np.split(sigmoid(affine(w, "leaf", slice(0, 2 * size), x)), 2)
    u = np.tanh(affine(w, "leaf", slice(2 * size, None), x))
    return forget_add_activate([], i, u, o)


def encode(w: Weights, left: HC, right: HC) -> HC:
    """The LSTM encoder: two-state gates, then one-state gates as often as there are stages."""
    size = len(w["compose.bias"]) // 5
    both = np.concatenate([left[0], right[0]])
    f1, f2, i, o = np.split(sigmoid(affine(w, "compose", slice(0, 4 * size), both)), 4)
    u = np.tanh(affine(w, "compose", slice(4 * size, None), both))
    h, c = forget_add_activate([(f1, left[1]), (f2, right[1])], i, u, o)
    stage = 0
    while f"refine.{stage}.weight" in w:
        name = f"refine.{stage}"
        f, i, o = np.split(sigmoid(affine(w, name, slice(0, 3 * size), h)), 3)
        u = np.tanh(affine(w, name, slice(3 * size, None), h))
        h, c = forget_add_activate([(f, c)], i, u, o)
        stage += 1
    return h, c


def perfect_tree(w: Weights, leaves: list[HC]) -> HC:
    """Merge neighbours until one is left; their number is a power of two."""
    while len(leaves) > 1:
        pairs = zip(leaves[::2], leaves[1::2], strict=True)
        leaves = [encode(w, left, right) for left, right in pairs]
    return leaves[0]


def states(w: Weights, x: Array) -> list[HC]:
    """The state after each of the tokens `x` (T, D)."""
    leaves = [embed(w, token) for token in x]
    after = []
    for n in range(1, len(leaves) + 1):
        state, rest = None, leaves[:n]
        while rest:
            size = 1 << (len(rest).bit_length() - 1)
            block, rest = perfect_tree(w, rest[:size]), rest[size:]
            state = block if state is None else encode(w, state, block)
        assert state is not None
        after.append(state)
    return after
