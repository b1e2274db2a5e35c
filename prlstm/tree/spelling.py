"""Which blocks of few different tokens there are, and how they are numbered: integers only.

Tokens are ids. What a model reads begins with letters, ids below `letters`; behind them may stand
one other id, `letters` itself, again and again. So a block of 2^k tokens is told by its *fill*, how
many letters it begins with, and by these letters, read as the digits of a number. The blocks of a
level are numbered fill by fill; a table holds one state for each.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from prlstm.tree.constants import kept

# numbers of blocks are int64
LARGEST = 1 << 62


@dataclass(frozen=True)
class Words:
    """What is known of ids (B, T): how many letters there are, and where words end.

    Every row begins with `length` letters; with None each row has its own number of them.
    """

    letters: int
    length: int | None

    def part(self, piece: range) -> "Words":
        """What is known of some ids that follow one another."""
        if self.length is None:
            return self
        return Words(self.letters, min(max(0, self.length - piece.start), len(piece)))

    def fills(self, level: int, tokens: int) -> tuple[int, ...]:
        """How many letters a block of this level may have, in rows of so many tokens."""
        size, blocks = 1 << level, tokens >> level
        if self.length is None:
            return tuple(range(size + 1))
        whole, rest = divmod(self.length, size)
        fills = {size} if whole and blocks else set()
        if rest and blocks > whole:
            fills.add(rest)
        if blocks > whole + (rest > 0):
            fills.add(0)
        return tuple(sorted(fills))


@dataclass(frozen=True)
class Table:
    """The blocks of one level: which fills they have, and so which numbers."""

    level: int
    letters: int
    fills: tuple[int, ...]

    @property
    def size(self) -> int:
        """Tokens of a block."""
        return 1 << self.level

    @property
    def entries(self) -> int:
        """How many blocks there are."""
        return int(sum(self.letters**fill for fill in self.fills))

    @property
    def firsts(self) -> tuple[int, ...]:
        """For every fill from none to all, the number of its first block; 0 if it has none."""
        firsts, place = [0] * (self.size + 1), 0
        for fill in self.fills:
            firsts[fill] = place
            place += self.letters**fill
        return tuple(firsts)

    def spelled(self, device: torch.device) -> Tensor:
        """The tokens of all blocks: ids (entries, size)."""
        return _spelled(self, device)

    def codes(self, ids: Tensor, start: int = 0, stop: int | None = None, step: int = 1) -> Tensor:
        """The numbers of some blocks of ids (..., T): (..., blocks)."""
        size = self.size
        count = ids.shape[-1] >> self.level
        whole = ids[..., : count * size].reshape(*ids.shape[:-1], count, size)
        blocks: Tensor = whole[..., start:stop:step, :]
        if self.fills == (0,):
            # however long they are: no powers that are too large
            return blocks.new_zeros(blocks.shape[:-1], dtype=torch.int64)
        powers, firsts = _numbers(self, ids.device)
        if self.fills == (size,):
            # words go on behind all blocks
            return torch.sum(blocks * powers[1:], -1)
        letters = blocks < self.letters
        fill = letters.sum(-1)
        # as if zeros stood behind the letters
        value = (torch.where(letters, blocks, 0) * powers[1:]).sum(-1)
        return firsts[fill] + torch.div(value, powers[fill], rounding_mode="floor")


@kept
def _numbers(table: Table, device: torch.device) -> tuple[Tensor, Tensor]:
    """The powers of the number of letters, falling to 1, and the firsts."""
    powers = [table.letters**k for k in reversed(range(table.size + 1))]
    return torch.tensor(powers, device=device), torch.tensor(table.firsts, device=device)


@kept
def _spelled(table: Table, device: torch.device) -> Tensor:
    parts = []
    for fill in table.fills:
        numbers = torch.arange(table.letters**fill)[:, None]
        powers = torch.tensor([table.letters**k for k in reversed(range(fill))], dtype=torch.long)
        letters = numbers // powers % table.letters
        parts.append(torch.nn.functional.pad(letters, (0, table.size - fill), value=table.letters))
    return torch.cat(parts).to(device)


def tables_for(
    words: Words, tokens: int, rows: int, *, most: int, extra: int, entries: int = LARGEST
) -> list[Table]:
    """The levels, from the leaves on, at which blocks are looked up, so that least is computed.

    `most` is the highest level that may be, and no table has more than so many `entries`. What is
    counted is merges: one for each entry of a table, or for each block of all rows; a state that is
    looked up costs an eighth of one, and every level of tables as much as `extra` merges.
    """
    tables = [Table(0, words.letters, words.fills(0, tokens))]
    found, saved, best = tables, 0.0, 0.0
    for level in range(1, most + 1):
        fills, blocks = words.fills(level, tokens), rows * (tokens >> level)
        is_many = not blocks or words.letters ** fills[-1] >= 4 * blocks
        if is_many or words.letters ** (1 << level) > LARGEST:
            break
        tables = [*tables, Table(level, words.letters, fills)]
        if tables[-1].entries > entries:
            break
        # half as many are looked up as at the level below
        saved += blocks - tables[-1].entries - extra + blocks / 8
        if saved > best:
            found, best = tables, saved
    return found
