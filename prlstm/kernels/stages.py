"""The blocks of an LSTM cell with their weights: a leaf, and a merge of several stages.

Stage 0 of a merge composes two states, every later one refines what the one before gave.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from prlstm.kernels import launch
from prlstm.kernels.nodes import compact
from prlstm.kernels.places import Counted, Entries, Rows, Shape, States
from prlstm.kernels.tiles import arithmetic, features_for
from prlstm.kernels.weights import (
    ALIGNMENT,
    Block,
    Tiled,
    spacing,
    tile_weights,
    tiled,
    untile_gradients,
)

# h and c of many states
Pair = tuple[States, States]


class Kept(NamedTuple):
    """What the backward pass needs of so many merges, besides h and c of the nodes.

    `gates[k]` (S, rows, C) of stage k; `h[k]` and `c[k]` (S, rows, H) after stage k, but the last.
    """

    gates: list[Tensor]
    h: list[Tensor]
    c: list[Tensor]


@dataclass(frozen=True)
class Stages:
    """The weights (S, G H, n K) of leaf and stages, as kernels of one arithmetic read them."""

    weights: Sequence[Tensor]
    biases: Sequence[Tensor]
    operand: torch.dtype
    precision: str
    # the weights in tiles, and then the biases, where they were put in place before
    packed: Sequence[Tensor] = ()

    @property
    def seeds(self) -> int:
        """Weights side by side."""
        return self.weights[0].shape[0]

    @property
    def hidden_size(self) -> int:
        """Features of a state."""
        return self.weights[0].shape[1] // 3

    @property
    def features(self) -> int:
        """Features of a tile."""
        return features_for(self.hidden_size)

    @property
    def size(self) -> int:
        """Features of a state in memory."""
        return aligned(self.hidden_size)

    @property
    def arithmetic(self) -> str:
        """How products are computed, by its name among the tiles."""
        return arithmetic(self.operand, self.precision)

    @cached_property
    def tiled(self) -> list[Tiled]:
        """The weights of the leaf, then of each stage."""
        count = len(self.weights)
        biases: Sequence[Tensor | None] = self.biases or [None] * count
        if self.packed:
            known = zip(self.packed[:count], self.packed[count:] or biases, strict=True)
            return [
                tiled(padded, weight, bias, self.features)
                for (weight, bias), (_, padded) in zip(known, self._blocks(), strict=True)
            ]
        return [
            tile_weights(weight, bias, plain, padded, self.features, self.operand)
            for weight, bias, (plain, padded) in zip(
                self.weights, biases, self._blocks(), strict=True
            )
        ]

    def pack(self) -> list[Tensor]:
        """The weights in tiles, and then the biases."""
        return [t.weight for t in self.tiled] + [t.bias for t in self.tiled if t.bias is not None]

    def packed_shapes(self) -> list[tuple[tuple[int, ...], torch.dtype]]:
        """The shapes and types of all that."""
        blocks = [padded for _, padded in self._blocks()]
        weights = [
            ((self.seeds * columns, block.inputs * spacing(block)), self.operand)
            for columns, block in zip(self.columns, blocks, strict=True)
        ]
        biases = [((self.seeds, columns), torch.float32) for columns in self.columns if self.biases]
        return [*weights, *biases]

    @property
    def columns(self) -> list[int]:
        """The gates' sums of one row, of the leaf and of each stage."""
        return [block.columns(self.features) for _, block in self._blocks()]

    def _blocks(self) -> list[tuple[Block, Block]]:
        """The sizes of every block as its weights say, and in memory."""
        inputs, hidden, size = self.weights[0].shape[2], self.hidden_size, self.size
        merges = [2] + [1] * (len(self.weights) - 2)
        return [
            (Block(0, inputs, hidden), Block(0, aligned(inputs), size)),
            *((Block(n, hidden, hidden), Block(n, size, size)) for n in merges),
        ]

    def between(self, like: Tensor, rows: int, *, gates: bool) -> Kept:
        """Memory for the states between stages of so many merges, and for the gates' sums."""

        def memory(width: int, dtype: torch.dtype) -> Tensor:
            return launch.empty(like, (self.seeds, rows, width), dtype)

        _, *stages = self.columns
        return Kept(
            [memory(columns, self.operand) for columns in stages] if gates else [],
            [memory(self.size, self.operand) for _ in stages[1:]],
            [memory(self.size, torch.float32) for _ in stages[1:]],
        )

    def tokens(self, x: Tensor) -> Tensor:
        """Tokens (S, B, T, D) as the leaf reads them: of whole rows, in the type of products."""
        features = x.shape[3]
        grown = F.pad(x, (0, aligned(features) - features)) if features % ALIGNMENT else x
        return grown.to(self.operand).contiguous()

    def leaf(
        self, x: Tensor, out: Pair, gates: Tensor | None, counted: Counted | None = None
    ) -> None:
        """The states of all `tokens` (S, B, T, D); `gates` (S, B T, C) where they are kept."""
        shape = Shape(*x.shape[:3])
        kept = None if gates is None else Rows(gates, 0)
        launch.forward(
            [States.of(x)], [], self.tiled[0], *out, kept, shape,
            precision=self.precision, counted=counted,
        )  # fmt: skip

    def merge(
        self,
        left: Pair,
        right: Pair,
        out: Pair,
        between: Kept,
        shape: Shape,
        row: int = 0,
        counted: Counted | None = None,
    ) -> None:
        """Compose and refine.

        States between two stages go to `between`, from its row `row` on, and so do the gates if
        it has room. With `counted` the first merges alone are made.
        """
        h_in, c_in = [left[0], right[0]], [left[1], right[1]]
        self._run(0, h_in, c_in, out, between, shape, row, counted)

    def merge_entries(
        self, entries: Entries, codes: Tensor, out: Pair, between: Kept, shape: Shape
    ) -> None:
        """The same for neighbouring entries of a table, at `codes` (S, B, T) or (1, B, T)."""
        made = self._made(0, out, between, shape, 0)
        launch.merge_entries(entries, codes, self.tiled[1], *made, shape)
        self._run(1, [made[0]], [made[1]], out, between, shape, 0, None)

    def sums(self, h: Tensor) -> Tensor:
        """What states h (S, V, H) give to the gates of a composition, see `Entries`."""
        stage = self.tiled[1]
        weight = stage.weight.view(self.seeds, stage.columns, 2, stage.spacing)
        weight = weight.transpose(1, 2).flatten(1, 2)
        # products of half precision are exact in float32, in which they are added
        with torch.autocast(h.device.type, enabled=False):
            sums = torch.bmm(h.float(), weight.float().mT)
        sums = sums.view(*h.shape[:2], 2, stage.columns)
        if stage.bias is not None:
            sums[:, :, 0] += stage.bias[:, None]
        return sums

    def _run(
        self,
        first: int,
        h: Sequence[States],
        c: Sequence[States],
        out: Pair,
        between: Kept,
        shape: Shape,
        row: int,
        counted: Counted | None,
    ) -> None:
        """The stages of a merge from the one of number `first` on."""
        for k in range(first, len(self.tiled) - 1):
            made = self._made(k, out, between, shape, row)
            launch.forward(
                h, c, self.tiled[k + 1], *made,
                Rows(between.gates[k], row) if between.gates else None, shape,
                precision=self.precision, counted=counted,
            )  # fmt: skip
            h, c = [made[0]], [made[1]]
            if counted is not None:
                # what was composed stands in the order of the rows
                counted = counted._replace(places=None)

    def _made(self, stage: int, out: Pair, between: Kept, shape: Shape, row: int) -> Pair:
        """Where a stage puts its states: between two, or out."""
        if stage == len(self.tiled) - 2:
            return out
        h, c = between.h[stage], between.c[stage]
        return compact(h, row, shape.length), compact(c, row, shape.length)

    def merge_backward(
        self,
        left: Pair,
        right: Pair,
        dleft: Pair,
        dright: Pair,
        dout: Pair,
        kept: Kept,
        dgates: Sequence[Tensor],
        dbiases: Sequence[Rows | None],
        scratch: tuple[Tensor, Tensor],
        shape: Shape,
        row: int,
        add: tuple[bool, bool],
    ) -> None:
        """The gradients of the gates' sums, from row `row` on, and of what was merged.

        `scratch` holds those of h and c between two stages, for as many rows as there are.
        """
        between = compact(scratch[0], 0, shape.length), compact(scratch[1], 0, shape.length)
        dh, dc = dout
        for k in reversed(range(len(self.tiled) - 1)):
            stage, gates = self.tiled[k + 1], Rows(kept.gates[k], row)
            if k:
                c_in, adds = [compact(kept.c[k - 1], row, shape.length)], (False, False)
                dh_in, dc_in = [between[0]], [between[1]]
            else:
                c_in, adds = [left[1], right[1]], add
                dh_in, dc_in = [dleft[0], dright[0]], [dleft[1], dright[1]]
            launch.backward(
                gates, dgates[k], c_in, dh, dc, dc_in, dbiases[k], stage, shape, add=adds
            )
            launch.input_gradient(
                Rows(dgates[k], row), stage, dh_in, shape,
                precision=self.precision, add=adds,
            )  # fmt: skip
            dh, dc = between

    def natural(
        self, block: int, dweight: Tensor, dbias: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """The gradients of a block, 0 the leaf, as its weight and bias have their places.

        Of parts that are summed: (S, splits, C, columns), (S, parts, C).
        """
        bias = self.biases[block] if self.biases else None
        sizes = self._blocks()[block]
        return untile_gradients(dweight, dbias, self.weights[block], bias, *sizes, self.features)


def aligned(size: int) -> int:
    """Features in memory: rows of whole tiles can be read by descriptors."""
    return -(-size // ALIGNMENT) * ALIGNMENT
