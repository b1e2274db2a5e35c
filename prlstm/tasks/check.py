"""What a user hands to a task, or an error that names it."""

import difflib
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

Lengths = Tensor | Sequence[int]


def read_name(name: object, known: Iterable[str], what: str) -> str:
    """One of some names, or an error that shows the closest and all of them."""
    names = list(known)
    if isinstance(name, str) and name in names:
        return name
    (close,) = difflib.get_close_matches(str(name), names, 1, 0)
    raise ValueError(
        f"name={name!r}: no such {what}, did you mean {close!r}? There are: {', '.join(names)}"
    )


def read_count(name: str, value: object, least: int = 1) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}={value!r}: expected an integer >= {least}")
    count = operator.index(value)
    if count < least:
        raise ValueError(f"{name}={count}: expected an integer >= {least}")
    return count


def read_lengths(
    lengths: Lengths, rows: int | None = None, longest: int | None = None, *, wait: bool = False
) -> Tensor:
    """The lengths of the rows of a batch, as a tensor of int64.

    Lengths on another device than the CPU are not looked at, unless it may be waited for.
    """
    read = read_integers("lengths", lengths)
    if wait:
        read = read.cpu()
    if read.dim() != 1 or len(read) == 0 or rows not in (None, len(read)):
        expected = "one length for each row" if rows is None else f"{rows} of them"
        raise ValueError(f"lengths of shape {tuple(read.shape)}: expected {expected}")
    if read.device.type == "cpu":
        wrong = read < 1
        if longest is not None:
            wrong |= read > longest
        if wrong.any():
            row = int(wrong.nonzero()[0])
            most = "" if longest is None else f" <= {longest}"
            raise ValueError(f"lengths[{row}]={int(read[row])}: expected 1 <= length{most}")
    return read


def read_words(tokens: Tensor, lengths: Lengths | None, size: int) -> list[list[int]]:
    """The words of a batch (B, L), cut to their lengths; every token is one of 0..size - 1."""
    rows, longest = batch_shape(tokens)
    words: list[list[int]] = tokens.tolist()
    if lengths is not None:
        n = read_lengths(lengths, rows, longest, wait=True).tolist()
        words = [word[:end] for word, end in zip(words, n, strict=True)]
    for row, word in enumerate(words):
        for place, token in enumerate(word):
            if not 0 <= token < size:
                raise ValueError(f"tokens[{row}, {place}]={token}: expected 0 <= token < {size}")
    return words


def batch_shape(tokens: Tensor) -> tuple[int, int]:
    """Rows and columns of a tensor of words."""
    if not isinstance(tokens, Tensor):
        raise TypeError(f"tokens={tokens!r:.80}: expected a tensor of integers (B, L)")
    # looked at, not copied: words may be a thousand million bytes
    _check_integers("tokens", tokens, tokens)
    if tokens.dim() != 2 or 0 in tokens.shape:
        raise ValueError(f"tokens of shape {tuple(tokens.shape)}: expected (B, L), both >= 1")
    return tokens.shape[0], tokens.shape[1]


def read_integers(name: str, given: Any) -> Tensor:
    """A tensor of int64, of whatever holds integers."""
    try:
        read = torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError):
        read = torch.empty(0)
    _check_integers(name, given, read)
    return read.long()


def _check_integers(name: str, given: Any, read: Tensor) -> None:
    if read.is_floating_point() or read.is_complex() or read.dtype == torch.bool:
        raise TypeError(f"{name}={given!r:.80}: expected integers")
