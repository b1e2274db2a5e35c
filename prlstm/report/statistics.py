"""How sure a score is: 95 % intervals from raw counts."""

import math
from collections.abc import Sequence

import numpy as np

# standard deviations on either side
SPREAD = 1.959964
# nothing was wrong in n words: with 95 % at most so many of n are
RULE_OF_THREE = 3.0
SUB_BATCH = 64

Counts = Sequence[Sequence[int]]


def score_interval(correct: Counts, total: Counts) -> tuple[float, float]:
    """Where the mean over lengths lies that more words would give.

    Counts are by length and sub-batch. Answers to one word depend on each other, sub-batches do
    not: so the spread is that between the sub-batches of a length. With one sub-batch alone it is
    that of words whose answers are all right or all wrong: no spread is greater.
    """
    right, of = np.asarray(correct, float), np.asarray(total, float)
    shares = right / of
    lengths, batches = shares.shape
    if batches > 1:
        variances = shares.var(axis=1, ddof=1) / batches
    else:
        variances = (shares * (1 - shares) / SUB_BATCH).mean(axis=1)
    mean = float(shares.mean())
    deviation = math.sqrt(float(variances.sum())) / lengths
    least = RULE_OF_THREE / (SUB_BATCH * shares.size)
    half = max(SPREAD * deviation, least)
    return max(0.0, mean - half), min(1.0, mean + half)


def share_interval(succeeded: int, of: int) -> tuple[float, float]:
    """Where the chance lies with which a seed succeeds (Wilson)."""
    if not 0 <= succeeded <= of or of < 1:
        raise ValueError(f"succeeded={succeeded} of={of}: expected 0 <= succeeded <= of, of >= 1")
    share, z2 = succeeded / of, SPREAD**2
    middle = (share + z2 / (2 * of)) / (1 + z2 / of)
    half = SPREAD * math.sqrt(share * (1 - share) / of + z2 / (4 * of * of)) / (1 + z2 / of)
    # rounding must not leave the share outside
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))
