"""Numbers of a configuration, or an error that names them."""

import math


def read_number(name: str, value: object) -> float:
    """A number as a float: 1 and 1.0 are one setting, and make one run."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name}={value!r:.40}: expected a number")
    try:
        return float(value)
    except OverflowError:
        # an integer with more than 308 digits
        return math.inf if value > 0 else -math.inf
