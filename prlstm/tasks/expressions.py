"""Bracketed expressions modulo 5, drawn at random: all rows at once.

An expression of n tokens is `d`, `-d`, `(d)` or `(-d)` for n = 1, 2, 3, 4, and from five tokens on
`(left op right)`, where the length of `left` is free from 1 to n - 4. So the length decides the
form, and every length has an expression.

A *part* is an expression inside the expression; a part of two sides is *inner*. Tensors of parts
are (parts, B), with one part more at the end, of size 0, for rows that have fewer.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from prlstm.tasks.grammar import MODULUS
from prlstm.tasks.uniform import pick

# ids of the operators, in this order; the brackets follow the last one in use
PLUS, MINUS, TIMES = 5, 6, 7
SMALLEST_INNER = 5


@dataclass(frozen=True)
class Parts:
    """Where every part begins and how many tokens it has; which part the i-th inner one is.

    Part 0 is the whole, parts 2i + 1 and 2i + 2 are the sides of the i-th inner one.
    """

    begin: Tensor
    size: Tensor
    inner: Tensor


def draw_expressions(
    numbers: Tensor, n: Tensor, longest: int, operators: int
) -> tuple[Tensor, Tensor]:
    """Expressions (B, longest) of `n` (B,) tokens, and their values (B,).

    The number at a token's place decides it: which digit, which operator, and at the opening
    bracket of an inner part how long its left side is. The first `operators` of + - * are in use.
    """
    by_place = numbers[:, :longest].T
    parts = _split(by_place, n)
    tokens = _write(by_place, parts, operators)
    return tokens[:longest].T.contiguous(), _value(tokens, parts)


def _split(by_place: Tensor, n: Tensor) -> Parts:
    """Split inner parts in the order in which they are found, as often as the longest row may."""
    most, rows = (len(by_place) - 1) // 4, len(n)
    none = 2 * most + 1
    begin = torch.zeros(none + 1, rows, dtype=torch.long, device=n.device)
    size = torch.zeros_like(begin)
    size[0] = n
    new = n >= SMALLEST_INNER
    # one more line takes what is not inner
    inner = torch.full((most + 1, rows), none, device=n.device)
    inner[0] = torch.where(new, 0, none)
    found = new.long()
    for i in range(most):
        left, right = 2 * i + 1, 2 * i + 2
        part = inner[i : i + 1]
        start, whole = begin.gather(0, part)[0], size.gather(0, part)[0]
        free = by_place.gather(0, start[None])[0]
        begin[left] = start + 1
        size[left] = (1 + pick(free, (whole - 4).clamp(min=1))) * (whole > 0)
        begin[right] = start + 2 + size[left]
        size[right] = (whole - 3 - size[left]) * (whole > 0)
        for side in (left, right):
            new = size[side] >= SMALLEST_INNER
            inner.scatter_(0, torch.where(new, found, most)[None], side)
            found += new
    return Parts(begin, size, inner[:most])


def _write(by_place: Tensor, parts: Parts, operators: int) -> Tensor:
    """The tokens by place (longest + 1, B): digits, and over them all that is none."""
    begin, size, longest = parts.begin, parts.size, len(by_place)
    opening, closing = PLUS + operators, PLUS + operators + 1
    # one more place takes what is not there
    tokens = pad(pick(by_place, MODULUS), (0, 0, 0, 1))
    bracketed, negated = size >= 3, (size == 2) | (size == 4)
    tokens.scatter_(0, torch.where(bracketed, begin, longest), opening)
    tokens.scatter_(0, torch.where(bracketed, begin + size - 1, longest), closing)
    tokens.scatter_(0, torch.where(negated, begin + size // 2 - 1, longest), MINUS)
    operator = _operators(parts, longest)
    drawn = PLUS + pick(by_place.gather(0, operator.clamp(max=longest - 1)), operators)
    return tokens.scatter_(0, operator, drawn)


def _operators(parts: Parts, longest: int) -> Tensor:
    """The places of the inner parts' operators, right behind their left sides."""
    begin, size = parts.begin[1:-1:2], parts.size[1:-1:2]
    return torch.where(size > 0, begin + size, longest)


def _value(tokens: Tensor, parts: Parts) -> Tensor:
    """The values (B,): digits and their signs first, then the inner parts, the last one first."""
    longest = len(tokens) - 1
    digit = tokens.gather(0, (parts.begin + parts.size // 2).clamp(max=longest))
    value = torch.where(parts.size % 2 == 0, -digit, digit)
    applied = tokens.gather(0, _operators(parts, longest))
    for i in reversed(range(len(parts.inner))):
        left, right = value[2 * i + 1], value[2 * i + 2]
        result = torch.where(applied[i] == PLUS, left + right, left - right)
        result = torch.where(applied[i] == TIMES, left * right, result) % MODULUS
        value.scatter_(0, parts.inner[i : i + 1], result[None])
    return value[0] % MODULUS
