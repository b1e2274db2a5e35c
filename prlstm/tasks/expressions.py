"""Bracketed expressions modulo 5, drawn at random: all rows at once.

An expression of n tokens is `d`, `-d`, `(d)` or `(-d)` for n = 1, 2, 3, 4, and from five tokens on
`(left op right)`, where the length of `left` is free from 1 to n - 4. So the length decides the
form, and every length has an expression.

A *part* is an expression inside the expression; a part of two sides is *inner*. All rows are split
in step, as often as the longest one may be; what a shorter row has not is put behind its tokens.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from prlstm.tasks.grammar import MINUS, MODULUS, PLUS, TIMES
from prlstm.tasks.uniform import pick, positions

# before its operator an inner part has an opening bracket and a digit at least; so behind it
MARGIN = 2


@dataclass(frozen=True)
class Parts:
    """The places low <= place < high at which the operator of a part may stand: (parts, B) each.

    So a part begins at low - 2 and ends before high + 2, and it is inner if there is such a place.
    Part 0 is the whole; parts 2i - 1 and 2i are the sides of the i-th inner one, which is part
    `inner[i]`. The last part is none at all: rows with fewer inner parts split that one.
    """

    low: Tensor
    high: Tensor
    inner: Tensor


def draw_expressions(
    numbers: Tensor, n: Tensor, longest: int, operators: int
) -> tuple[Tensor, Tensor]:
    """Expressions (B, longest) of `n` (B,) tokens, and their values (B,).

    The number at a token's place decides it: which digit, which operator, and at the opening
    bracket of an inner part where its operator stands. The first `operators` of + - * are in use,
    and the ids of the brackets follow theirs.
    """
    by_place = numbers[:, :longest].T
    parts = _split(by_place, n)
    tokens = _write(by_place, parts, operators)
    return tokens[:longest].T.contiguous(), _value(tokens, parts)


def _split(by_place: Tensor, n: Tensor) -> Parts:
    """Split inner parts in the order in which they are found."""
    longest, rows = by_place.shape
    most = (longest - 1) // 4
    # the number of an inner part is in line `low`
    free = pad(by_place, (0, 0, MARGIN, 0))
    bounds = torch.full((2 * most + 2, 2, rows), longest + 1, device=n.device)
    bounds[0] = torch.stack([torch.full_like(n, MARGIN), n - MARGIN])
    inner = torch.full((most + 1, rows), 2 * most + 1, device=n.device)
    found, ids = torch.zeros_like(n)[None], positions(2 * most + 1, n)[:, None].expand(-1, rows)
    # of two sides: low and high of the left one, low and high of the right one
    shift = torch.stack([1 + 2 * positions(2, n), positions(2, n) - MARGIN], 1)[..., None]
    # all views at once: on a GPU the time goes into calls
    pairs = (
        bounds[1:-1].view(most, 2, 2, rows).unbind(0),
        ids[1:].view(most, 2, rows).unbind(0),
    )
    sides, part = bounds[:1], ids[:1]
    for new_sides, new_part, this in zip(*pairs, inner[1:].unbind(0), strict=True):
        found = _note(sides, part, inner, found)
        low, high = bounds.gather(0, this.expand(1, 2, rows)).unbind(1)
        operator = low + pick(free.gather(0, low), high - low)
        around = torch.cat([low, operator, operator, high]).view(2, 2, rows)
        sides, part = torch.add(around, shift, out=new_sides), new_part
    low, high = bounds.unbind(1)
    return Parts(low, high, inner)


def _note(sides: Tensor, part: Tensor, inner: Tensor, found: Tensor) -> Tensor:
    """Line up the sides that are inner behind those found before; how many there are now.

    Line 0 takes the others.
    """
    low, high = sides.unbind(1)
    new = high > low
    count = found + new.cumsum(0)
    inner.scatter_(0, count * new, part)
    return count[-1:]


def _write(by_place: Tensor, parts: Parts, operators: int) -> Tensor:
    """The tokens by place: digits, and over them all that is none."""
    longest = len(by_place)
    begin, end = parts.low[:-1] - MARGIN, parts.high[:-1] + MARGIN
    size = end - begin
    opening, closing = PLUS + operators, PLUS + operators + 1
    # operators and digits of parts that a row has not lie up to three places behind the longest
    tokens = pad(pick(by_place, MODULUS), (0, 0, 0, 3))
    bracketed, negated = size >= 3, (size == 2) | (size == 4)
    tokens.scatter_(0, torch.where(bracketed, begin, longest), opening)
    tokens.scatter_(0, torch.where(bracketed, end - 1, longest), closing)
    tokens.scatter_(0, torch.where(negated, begin + size // 2 - 1, longest), MINUS)
    place = _operators(parts)
    drawn = PLUS + pick(by_place.gather(0, place.clamp(max=longest - 1)), operators)
    return tokens.scatter_(0, place, drawn)


def _operators(parts: Parts) -> Tensor:
    """The places of the inner parts' operators, right behind their left sides."""
    return parts.high[1:-1:2] + MARGIN


def _value(tokens: Tensor, parts: Parts) -> Tensor:
    """The values (B,): digits and their signs first, then the inner parts, the last one first."""
    begin, size = parts.low - MARGIN, parts.high - parts.low + 2 * MARGIN
    digit = tokens.gather(0, begin + size // 2)
    value = torch.where(size % 2 == 0, -digit, digit)
    operator = tokens.gather(0, _operators(parts))
    times, sign = operator == TIMES, torch.where(operator == PLUS, 1, -1)
    sides = value[1:-1].view(len(operator), 2, value.shape[1])
    each = (sides, times, sign, parts.inner[1:, None])
    every = zip(*(one.unbind(0) for one in each), strict=True)
    for side, product, signed, this in reversed(list(every)):
        left, right = side.unbind(0)
        result = torch.where(product, left * right, torch.addcmul(left, signed, right))
        value.scatter_(0, this, result[None] % MODULUS)
    return value[0] % MODULUS
