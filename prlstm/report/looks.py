"""Which curve looks like what: a model looks the same in every chart."""

from collections.abc import Mapping, Sequence

# some have several names, of which a chart has one
KNOWN: Mapping[str, int] = {
    "PR-LSTM": 0, "PR-LSTM, all states": 0,
    "LSTM": 1, "RNN (LSTM)": 1,
    "Transformer": 2, "Transformer encoder": 2,
    "RNN": 3, "Stack-RNN": 4, "Tape-RNN": 5,
}  # fmt: skip


def looks_of(labels: Sequence[str], count: int) -> dict[str, int]:
    """The number of the look of every label: known ones have theirs, the others what is left.

    Behind the last of `count` looks those that are left come again.
    """
    fixed = {label: KNOWN[label] for label in labels if label in KNOWN}
    free = [look for look in range(count) if look not in fixed.values()]
    others = [label for label in labels if label not in fixed]
    rest = {label: free[place % len(free)] for place, label in enumerate(others)}
    return {label: (fixed | rest)[label] for label in labels}
