"""Numbers as a person reads them."""

import math


def percent(share: float) -> str:
    """A share in percent, rounded down: what is not all is not 100."""
    return f"{math.floor(round(1000 * share, 6)) / 10:.1f}"


def short_count(count: int) -> str:
    """Thousands and millions as 100k and 1M."""
    for size, letter in ((1_000_000, "M"), (1000, "k")):
        if count >= size:
            return f"{count / size:.3g}{letter}"
    return str(count)


def steps_range(least: int, most: int) -> str:
    """From so many steps to so many."""
    return short_count(most) if least == most else f"{short_count(least)}-{short_count(most)}"
