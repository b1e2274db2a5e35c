"""Whole square roots of many numbers of any size at once.

Long division by hand, in base 4: two bits of the number give one bit of the root. With q the root
so far and r the rest, the next two bits p make 4r + p; if 4q + 1 fits into it, the next bit of the
root is one and 4q + 1 is taken off. The state of all rows is in whole numbers of 28 bits each
(limbs), lowest first: (limbs, B).
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from prlstm.tasks.uniform import positions

# the root of a number of 2 x 26 bits is exact in float64
HEAD = 26
LIMB = 28
BASE = 1 << LIMB


def square_root(bits: Tensor, n: Tensor) -> Tensor:
    """The bits (B, ceil(W / 2)) of the whole square roots of numbers of `n` (B,) bits (B, W).

    Highest bit first. A row of n bits has ceil(n / 2) of root; what follows means nothing.
    """
    pairs = _pairs(bits, n)
    head = pad(pairs[:, :HEAD], (0, max(0, HEAD - pairs.shape[1])))
    place = positions(HEAD, bits).flip(0)
    top = (head << 2 * place).sum(1)
    root = top.double().sqrt().long()
    found = list(((root[:, None] >> place) & 1).unbind(1))[: pairs.shape[1]]
    if len(found) < pairs.shape[1]:
        limbs = -(-(pairs.shape[1] + 2) // LIMB)
        rest, double = _limbs(top - root * root, limbs), _limbs(2 * root, limbs)
        for pair in pairs[:, HEAD:].unbind(1):
            rest, double, bit = _step(rest, double, pair)
            found.append(bit)
    return torch.stack(found, 1)


def _step(rest: Tensor, double: Tensor, pair: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One more bit: from r, 2q and the next two bits to the new r, 2q and the bit."""
    rest, double = _shifted(rest, 2), _shifted(double, 1)
    rest[0] += pair
    less = rest - double
    less[0] -= 1
    # up to every limb: the highest that is not zero decides the sign
    limb = positions(len(less), less)[:, None]
    decides = torch.where(less != 0, limb, 0).cummax(0).values
    negative = less.gather(0, decides) < 0
    less += BASE * negative
    less[1:] -= negative[:-1].long()
    fits = ~negative[-1]
    double[0] += 2 * fits
    return torch.where(fits, less, rest), double, fits.long()


def _shifted(limbs: Tensor, bits: int) -> Tensor:
    """Numbers times 2^bits."""
    shifted = limbs << bits
    shifted[1:] += shifted[:-1] >> LIMB
    return shifted & (BASE - 1)


def _limbs(value: Tensor, limbs: int) -> Tensor:
    """Numbers below 2^56 (B,) as limbs."""
    low = torch.stack([value & (BASE - 1), value >> LIMB])
    return pad(low, (0, 0, 0, max(0, limbs - 2)))


def _pairs(bits: Tensor, n: Tensor) -> Tensor:
    """Two bits each, highest first, from the first bit of every row on: (B, ceil(W / 2)).

    A number of an odd number of bits begins with half a pair.
    """
    half = (bits.shape[1] + 1) // 2
    # one zero in front of every row, one behind
    wide = pad(bits, (1, 1))
    second = 2 * positions(half, bits) + 2 - (n % 2)[:, None]
    return 2 * wide.gather(1, second - 1) + wide.gather(1, second)
