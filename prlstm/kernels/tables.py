"""Tables of blocks by kernels: where they stand in memory, how they are filled, their gradients.

Level by level stand the entries, and before those of every level but the first the pairs that they
are merged of, looked up in the table below: two neighbours for each entry.

Behind words of one length stand blocks without a letter. Above the levels that are looked up whole
such blocks, the last ones of every row, may have tables of one entry.
"""

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from prlstm.kernels import launch
from prlstm.kernels.layout import Array, Layout
from prlstm.kernels.places import Entries, Shape, States
from prlstm.kernels.stages import Kept, Pair, Stages
from prlstm.tree.constants import kept
from prlstm.tree.spelling import LARGEST, Table, Words, tables_for

# merges, of all seeds, that take as long as one more level of tables
EXTRA = 512
# Where merges of entries look the sums of their gates up: so many merges for each entry, so many
# of all seeds that they are worth the launches, and no more entries than a cache holds sums of
MERGES_OF_AN_ENTRY, LEAST_MERGES, MOST_ENTRIES = 8, 4096, 4096


@dataclass(frozen=True)
class TableLayout:
    """Where the states of some tables stand: integers only."""

    tables: tuple[Table, ...]
    # of the levels that are not looked up whole: the first block that is, and all behind it
    shared: tuple[int, ...] = ()

    @property
    def top(self) -> int:
        """The highest level that is looked up whole."""
        return len(self.tables) - 1 - len(self.shared)

    @property
    def states(self) -> int:
        """Entries and pairs of all tables."""
        return sum(self._sizes)

    @property
    def merges(self) -> int:
        """Entries that are merged."""
        return sum(table.entries for table in self.tables[1:])

    def row(self, level: int) -> int:
        """How many are merged before those of a level."""
        return sum(table.entries for table in self.tables[1:level])

    def entries(self, level: int) -> int:
        """The place of the first entry of a table."""
        return sum(self._sizes[: 2 * level])

    def pairs(self, level: int) -> int:
        """The place of the first pair that a table above the first is merged of."""
        return sum(self._sizes[: 2 * level - 1])

    @property
    def _sizes(self) -> list[int]:
        """Entries of the first table; pairs and entries of the second; and so on."""
        first, *others = (table.entries for table in self.tables)
        return [first, *(size for entries in others for size in (2 * entries, entries))]


def lay_out_tables(
    words: Words, tokens: int, count: int, rows: int, seeds: int, most: int, entries: int = LARGEST
) -> TableLayout:
    """The tables that are worth it, for `tokens` behind `count` others, up to level `most`.

    None has more than so many `entries`.
    """
    # the compiler's number of rows is compared: one program serves all for which that ends alike
    make = _laid_out if isinstance(rows, int) else _lay_out
    return make(words, tokens, count, rows, seeds, most, entries)


def _lay_out(
    words: Words, tokens: int, count: int, rows: int, seeds: int, most: int, entries: int
) -> TableLayout:
    highest = tokens.bit_length() - 1
    if count:
        # blocks must begin where those of the whole sequence do
        highest = min(highest, (count & -count).bit_length() - 1)
    extra = EXTRA // seeds
    tables = tables_for(words, tokens, rows, most=min(most, highest), extra=extra, entries=entries)
    first = len(tables)
    shared = _shared(words, tokens, rows, range(first, highest + 1), extra) if most else ()
    empty = (Table(level, words.letters, (0,)) for level in range(first, first + len(shared)))
    return TableLayout((*tables, *empty), shared)


_laid_out = lru_cache(maxsize=1024)(_lay_out)


def _shared(words: Words, tokens: int, rows: int, levels: range, extra: int) -> tuple[int, ...]:
    """Of each level the first block without a letter, as far up as it is worth to merge one alone.

    Counted as in `tables_for`.
    """
    firsts: list[int] = []
    if words.length is None:
        return ()
    saved, best, worth = 0.0, 0.0, 0
    for level in levels:
        firsts.append(-(-words.length >> level))
        merges = rows * ((tokens >> level) - firsts[-1])
        if merges <= 0:
            break
        saved += merges - merges / 8 - 1 - extra
        if saved > best:
            best, worth = saved, len(firsts)
    return tuple(firsts[:worth])


@dataclass(frozen=True)
class TableNodes:
    """The states of tables, h and c, from state `base` on of memory (S, states, H)."""

    layout: TableLayout
    memory: tuple[Tensor, Tensor]
    base: int

    def entries(self, level: int) -> Pair:
        """Those of a table, one after the other."""
        return self._states(self.layout.entries(level), 1)

    def pairs(self, level: int) -> tuple[Pair, Pair]:
        """What a table is merged of: left and right."""
        place = self.layout.pairs(level)
        return self._states(place, 2), self._states(place + 1, 2)

    def neighbours(self, level: int) -> Pair:
        """The same, left and right in turn."""
        return self._states(self.layout.pairs(level), 1)

    def look_up(self, level: int, codes: Tensor, out: Pair, shape: Shape) -> None:
        """Put the entries of a table at codes (S, rows), or (1, rows) for all seeds, to `out`."""
        place = self.base + self.layout.entries(level)
        launch.look_up(self.memory, place, codes, out, shape)

    def to_merge(self, stages: Stages, level: int) -> Entries:
        """A table as merges of its entries look it up, once it is filled."""
        place = self.base + self.layout.entries(level)
        h = self.memory[0][:, place : place + self.layout.tables[level].entries]
        return Entries(stages.sums(h), self.memory[1], place)

    def sum(self, level: int, codes: Tensor, given: Pair, shape: Shape, *, add: bool) -> None:
        """The gradients of a table's entries, of what came for those that were looked up.

        These are tables of gradients; `given` stands where entries at `codes` were put.
        """
        place, entries = self.base + self.layout.entries(level), self.layout.tables[level].entries
        launch.sum_entries(codes, *given, self.memory, place, entries, shape, add=add)

    def _states(self, place: int, step: int) -> Pair:
        h, c = (self._of(t, place, step) for t in self.memory)
        return h, c

    def _of(self, t: Tensor, place: int, step: int) -> States:
        at = (self.base + place) * t.shape[2]
        return States(t, (t.stride(0), 0, step * t.shape[2], at, at))


def are_sums_worth_it(entries: int, merges: int, seeds: int) -> bool:
    """Whether the products of a table's entries are made once each, not in each of its merges."""
    is_many = merges >= MERGES_OF_AN_ENTRY * entries and seeds * merges >= LEAST_MERGES
    return is_many and entries <= MOST_ENTRIES


def fill_tables(
    stages: Stages,
    tables: TableNodes,
    x: Tensor,
    gates: Tensor | None,
    kept: Kept | None,
    row: int,
    *,
    needs_pairs: bool,
) -> None:
    """Compute all entries; `x` (S, 1, V, D) are the tokens of the first table.

    What the backward pass needs goes to `kept`, from `row` on, and to `gates` of the leaves; it
    needs the pairs too.
    """
    layout = tables.layout
    stages.leaf(x, tables.entries(0), gates)
    most = max((table.entries for table in layout.tables[1:]), default=0)
    between = kept or stages.between(tables.memory[0], most, gates=False)
    for level in range(1, len(layout.tables)):
        shape = Shape(stages.seeds, 1, layout.tables[level].entries)
        below = layout.tables[level - 1].entries
        if not needs_pairs and are_sums_worth_it(below, shape.rows, shape.seeds):
            known = tables.to_merge(stages, level - 1)
            codes = pair_codes(layout, level, x.device)[:, None]
            stages.merge_entries(known, codes, tables.entries(level), between, shape)
            continue
        look_up_pairs(tables, level)
        here = 0 if kept is None else row + layout.row(level)
        stages.merge(*tables.pairs(level), tables.entries(level), between, shape, here)


def look_up_pairs(tables: TableNodes, level: int) -> None:
    """Put the pairs of a level where it is merged from."""
    entries, seeds = tables.layout.tables[level].entries, tables.memory[0].shape[0]
    codes = pair_codes(tables.layout, level, tables.memory[0].device)
    tables.look_up(level - 1, codes, tables.neighbours(level), Shape(seeds, 1, 2 * entries))


@kept
def pair_codes(layout: TableLayout, level: int, device: torch.device) -> Tensor:
    """Of the pairs of a level the numbers in the table below: (1, 2 * entries)."""
    below, table = layout.tables[level - 1 : level + 1]
    return below.codes(table.spelled(device)).to(torch.int32).reshape(1, -1)


def codes_of(ids: Tensor, table: Table, blocks: range) -> Tensor:
    """The numbers of some blocks of ids (S, B, T): (S, B, blocks)."""
    return launch.spell(ids, table.letters, firsts_of(table, ids.device), table.size, blocks)


@kept
def no_letters(rows: int, device: torch.device) -> Tensor:
    """The numbers of blocks in a table of one entry: (1, rows)."""
    return torch.zeros((1, rows), dtype=torch.int32, device=device)


@kept
def firsts_of(table: Table, device: torch.device) -> Tensor:
    """For each number of letters the number of the first block."""
    return torch.tensor(table.firsts, dtype=torch.int32, device=device)


def blocks_read(layout: Layout, tables: TableLayout, level: int) -> range:
    """Which blocks of a level are looked up.

    Of the top one all, of those below what is read, above it those without a letter.
    """
    if level >= tables.top:
        # one that waited for a partner is there already
        stop = layout.counts[level] - (level in layout.waiting)
        return range(tables.shared[level - tables.top - 1] if level > tables.top else 0, stop)
    first, stop = 0, 0
    for step in layout.steps:
        if not step.is_up and step.right.level == level:
            first, stop = step.right.start, step.right.start + 2 * step.length - 1
    if level in (block for _, block in layout.from_blocks):
        # the first block is a prefix itself
        assert first in (0, 2), f"blocks of level {level} are read from {first} on"
        first, stop = 0, max(stop, 1)
    return range(first, stop, 2)


def looked_up_array(layout: Layout, level: int, blocks: range) -> Array:
    """Where these blocks stand in the array of their level."""
    first = blocks.start + (level in layout.waiting)
    return Array(level, first, blocks.step, first)
