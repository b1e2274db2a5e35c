"""Whether counts fit probabilities: Pearson's test at a fixed level."""

import math
from collections.abc import Sequence


def assert_likely(counts: Sequence[float], chances: Sequence[float]) -> None:
    """Fail when counts this far from `chances` come up less than once in 30,000 times."""
    assert math.isclose(sum(chances), 1, abs_tol=1e-9)
    total = sum(counts)
    assert all(count == 0 for count, p in zip(counts, chances, strict=True) if p == 0)
    pairs = [(count, total * p) for count, p in zip(counts, chances, strict=True) if p > 0]
    # cells in which less than 5 are expected are counted together
    rare = [pair for pair in pairs if pair[1] < 5]
    pairs = [pair for pair in pairs if pair[1] >= 5]
    if rare:
        pairs.append((sum(got for got, _ in rare), sum(want for _, want in rare)))
    if len(pairs) < 2:
        return
    statistic = sum((got - want) ** 2 / want for got, want in pairs)
    # Wilson and Hilferty: its cube root is nearly normal
    free = len(pairs) - 1
    z = ((statistic / free) ** (1 / 3) - (1 - 2 / (9 * free))) / math.sqrt(2 / (9 * free))
    assert z < 4, f"chi-square {statistic:.1f} with {free} degrees of freedom, z = {z:.1f}"
