"""Whole numbers of any size as rows of bits, lowest first: words and arithmetic."""

from collections.abc import Sequence

import torch
from torch import Tensor

from prlstm.tasks.uniform import nonzero_bits, pick, positions

SIGN = 2
END = 2


def number(bits: Sequence[int]) -> int:
    """The number that bits write, lowest first."""
    return sum(bit << place for place, bit in enumerate(bits))


def written(value: int) -> list[int]:
    """The bits of a number, lowest first, without zeros at the end; one bit for zero."""
    return [int(bit) for bit in reversed(f"{value:b}")]


def operands_of(word: Sequence[int]) -> tuple[int, int]:
    """The two numbers of a word."""
    if list(word).count(SIGN) != 1 or SIGN in (word[0], word[-1]):
        raise ValueError("expected two numbers in bits with one sign between them")
    sign = list(word).index(SIGN)
    return number(word[:sign]), number(word[sign + 1 :])


def draw_operands(numbers: Tensor, n: Tensor, longest: int) -> tuple[Tensor, Tensor, Tensor]:
    """Words of two numbers, and the bits of each (B, longest).

    From three tokens on: the place of the sign is free, and so are the numbers, zero excluded.
    Shorter words are one number of n bits, anything but all ones, and the other one is zero.
    """
    place, short = positions(longest, numbers), n < 3
    width = torch.where(short, n, 1 + pick(numbers[:, 0], (n - 2).clamp(min=1)))[:, None]
    free, behind = numbers[:, 1:], (width + 1 + place).clamp(max=longest - 1)
    left = nonzero_bits(free, width[:, 0])
    left = torch.where(short[:, None], (1 - left) * (place < width), left)
    right = nonzero_bits(free.gather(1, behind), n - 1 - width[:, 0])
    beside = right.gather(1, (place - width - 1).clamp(min=0))
    word = torch.where(place < width, left, torch.where(place == width, SIGN, beside))
    return word, left, right


def carried(digits: Tensor) -> Tensor:
    """Binary digits (B, W) of the number that digits 0, 1, 2 write, modulo 2^W.

    A 2 sends a carry on, a 1 passes on the one that it gets, a 0 keeps it: so the carry out of a
    place is decided at the last place, up to there, that is not 1. No ripple, any size.
    """
    place = positions(digits.shape[1], digits)
    decides = torch.where(digits != 1, place, 0).cummax(1).values
    out = digits.gather(1, decides) == 2
    arrives = torch.nn.functional.pad(out, (1, 0))[:, :-1]
    return (digits + arrives) % 2


def product(left: Tensor, right: Tensor) -> Tensor:
    """Binary digits (B, W) of the product of two numbers in bits (B, W), modulo 2^W.

    A digit of the product, before carries, counts pairs of ones: a convolution. In float64 its
    error stays far below one half for any length that fits into memory, so rounding is exact.
    """
    width = left.shape[1]
    size = 2 * width
    spectrum = torch.fft.rfft(left.double(), size) * torch.fft.rfft(right.double(), size)
    digits = torch.fft.irfft(spectrum, size)[:, :width].round().long()
    # every turn halves the digits, until none is above 2
    for _ in range(width.bit_length()):
        digits = (digits & 1) + torch.nn.functional.pad(digits >> 1, (1, 0))[:, :-1]
    return carried(digits)


def size_of(bits: Tensor) -> Tensor:
    """How many bits (B, W) a number has without zeros at the end: (B, 1), one for zero."""
    count = 1 + positions(bits.shape[1], bits)
    return (bits * count).amax(1, keepdim=True).clamp(min=1)


def terminated(bits: Tensor, size: Tensor) -> Tensor:
    """The first `size` (B, 1) bits of every row, then the terminator, then zeros."""
    place = positions(bits.shape[1], bits)
    return torch.where(place < size, bits, END * (place == size))
