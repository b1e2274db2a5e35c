"""Rows of a padded batch that end early."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

# Batches are (rows, time, features).
TIME = 1


@dataclass(frozen=True)
class RowLengths:
    """The true length of every row: for decisions on the host, for arithmetic on the device."""

    host: tuple[int, ...]
    tensor: Tensor

    @staticmethod
    def read(lengths: object, x: Tensor) -> "RowLengths | None":
        """What a user gave as the lengths of the rows of `x` (B, T, D); None where all are T."""
        if lengths is None:
            return None
        given = lengths.tolist() if hasattr(lengths, "tolist") else lengths
        if not isinstance(given, Sequence) or not all(map(is_integer, given)):
            raise TypeError(
                f"lengths={lengths}: expected a list or tensor, an integer for each row"
            )
        rows, longest = x.shape[:2]
        if len(given) != rows:
            raise ValueError(f"lengths={lengths}: expected {rows} of them, one for each row")
        for row, n in enumerate(given):
            if not 1 <= n <= longest:
                raise ValueError(f"lengths[{row}]={n}: expected 1 <= length <= T={longest}")
        if all(n == longest for n in given):
            return None
        host = tuple(map(operator.index, given))
        return RowLengths(host, torch.tensor(host, device=x.device))

    def clip(self, stop: int) -> "RowLengths | None":
        """The lengths when only the first `stop` positions are there; None where all fill them."""
        if min(self.host) >= stop:
            return None
        return RowLengths(tuple(min(n, stop) for n in self.host), self.tensor.clamp(max=stop))

    def without(self, start: int) -> "RowLengths":
        """What is left of every row without its first `start` positions, at least one."""
        left = tuple(max(1, n - start) for n in self.host)
        return RowLengths(left, (self.tensor - start).clamp(min=1))

    def rows(self, index: list[int]) -> "RowLengths":
        """The lengths of some rows."""
        return RowLengths(tuple(self.host[row] for row in index), self.tensor[index])

    def behind(self, start: int, stop: int) -> Tensor:
        """Where the positions `start..stop` lie behind a row's end: (B, stop - start, 1)."""
        position = torch.arange(start, stop, device=self.tensor.device)
        return (position >= self.tensor[:, None])[..., None]


def is_integer(value: Any) -> bool:
    """Whether `value` is a whole number of any kind; True and False are not."""
    if isinstance(value, bool) or getattr(value, "dtype", None) == torch.bool:
        return False
    try:
        operator.index(value)
    except (TypeError, ValueError, RuntimeError):
        return False
    return True


def reverse_rows(x: Tensor, lengths: RowLengths | None) -> Tensor:
    """Every row of `x` (B, T, ...) back to front up to its own length; padding stays in place."""
    if lengths is None:
        return x.flip(TIME)
    position, length = torch.arange(x.shape[TIME], device=x.device), lengths.tensor[:, None]
    return pick(x, torch.where(position < length, length - 1 - position, position))


def pick(x: Tensor, index: Tensor) -> Tensor:
    """For every row of `x` (B, T, ...) the positions `index` (B, n) of that row: (B, n, ...)."""
    return x[torch.arange(x.shape[0], device=x.device)[:, None], index]
