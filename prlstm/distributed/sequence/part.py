"""One layer over a rank's part of a sequence: reduce, exchange roots, compute the prefixes."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from prlstm.dispatch import Reader
from prlstm.distributed.sequence.exchange import gathered, joined
from prlstm.distributed.sequence.parts import Piece
from prlstm.distributed.sequence.ranks import Ranks
from prlstm.distributed.sequence.roots import Root, extended
from prlstm.lengths import TIME
from prlstm.tree import Carry, MergeFunction, Node, Plan, Sweep
from prlstm.tree.scan import ComputedBlocks, down_sweep, up_sweep

FRESH = Carry()


@dataclass(frozen=True)
class Read:
    """What a layer gave for a rank's part.

    `h` (B, T, H) at every position of the part, or (B, 1, H) of the whole sequence's last state,
    on every rank. `final` and `carry` are those after the part's last token.
    """

    h: Tensor
    final: Node
    carry: Carry


def read_part(
    reader: Reader,
    x: Tensor,
    earlier: Carry,
    places: Sequence[Sequence[Piece]],
    ranks: Ranks,
    *,
    last: bool,
    trained: bool,
) -> Read:
    """Read this rank's part `x` (B, T, D), or ids (B, T), made of the pieces `places` gives it.

    With `last` nobody reads but the end of the sequence; with `trained` some weight of the layer
    wants a gradient.
    """
    merge = reader.functions(x.flatten(0, 1))[1]
    mine = places[ranks.rank]
    parts = torch.split(x, [len(piece) for piece in mine], TIME)
    reduced = [
        reader.sweep_to_end(part, FRESH)
        if last
        else reader.sweep(part, FRESH, len(piece) - 1, every=True)
        for part, piece in zip(parts, mine, strict=True)
    ]
    # the last rank's too, for the sake of equal sizes: nobody reads them
    roots = _padded([done.read for done in reduced], max(map(len, places)))
    if trained:
        # a token alone was not merged: where only merges are trained its rank goes backward too
        roots = tuple(t.requires_grad_() if t.is_floating_point() else t for t in roots)
    exchanged = gathered(ranks, roots)
    before = [
        (piece.level, tuple(t[rank, :, n : n + 1] for t in exchanged))
        for rank in range(ranks.rank)
        for n, piece in enumerate(places[rank])
    ]
    carry = extended(merge, earlier, before)
    if last:
        carry = extended(merge, carry, _roots(mine, reduced))
        final = joined(exchanged, carry.fold(0))
        ends = gathered(ranks, final)
        h, *end = joined(ends, (ends[0][-1], *final))
        return Read(h, tuple(end), carry)
    outs = []
    for piece, part, done in zip(mine, parts, reduced, strict=True):
        there = _prefixes(reader, merge, part, piece, done, carry)
        outs.append(there.read)
        carry = there.carry()
    whole = torch.cat([h for h, *_ in outs], TIME)
    h, *end = joined(exchanged, (whole, *(t[:, -1:] for t in outs[-1])))
    return Read(h, tuple(end), carry)


def _prefixes(
    reader: Reader, merge: MergeFunction, x: Tensor, piece: Piece, reduced: Sweep, carry: Carry
) -> Sweep:
    """All prefixes of a piece that follows `carry`.

    What was merged already is not merged again, where all blocks of the piece are at hand; the
    kernels compute a tree as a whole, and looked-up blocks cost nothing.
    """
    if reader.kernels() is not None or not isinstance(reduced.blocks, ComputedBlocks):
        return reader.sweep(x, carry, 0)
    plan = Plan(len(piece), count=piece.start)
    levels = plan.levels
    # blocks below the piece's level begin and end in it
    blocks = tuple(reduced.blocks[: piece.level])
    if piece.is_whole:
        root = reduced.blocks[piece.level]
        blocks += up_sweep(merge, root, TIME, levels[piece.level :], carry)
    made = ComputedBlocks(blocks, TIME)
    return Sweep(plan, TIME, made, down_sweep(merge, made, TIME, levels, carry), carry)


def _roots(places: Sequence[Piece], reduced: Sequence[Sweep]) -> list[Root]:
    """The blocks of a part, in order; those of a piece that is not whole one by one."""
    found: list[Root] = []
    for piece, done in zip(places, reduced, strict=True):
        if piece.is_whole:
            found.append((piece.level, done.read))
        else:
            waiting = reversed(list(enumerate(done.carry().blocks)))
            found += [(level, block) for level, block in waiting if block is not None]
    return found


def _padded(roots: Sequence[Node], slots: int) -> Node:
    """States (B, slots, H): every rank sends as many."""
    filled = [*roots, *[roots[-1]] * (slots - len(roots))]
    return tuple(torch.cat(tensors, TIME) for tensors in zip(*filled, strict=True))
