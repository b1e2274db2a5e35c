"""SplitSequence: a PRLSTM whose ranks each read a part of one sequence."""

from dataclasses import dataclass, replace
from typing import cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F

from prlstm.cells import Cell
from prlstm.distributed.sequence.part import Read, read_part
from prlstm.distributed.sequence.parts import Piece, all_pieces
from prlstm.distributed.sequence.ranks import Ranks, Said
from prlstm.inputs import Batch, read_batch
from prlstm.layer import PRLSTM
from prlstm.lengths import TIME
from prlstm.state import State
from prlstm.state_shape import StateShape
from prlstm.tree import Carry
from prlstm.tree.rows import Pending


class SplitSequence(nn.Module):
    """A `PRLSTM` over one sequence of which every rank of a process group holds a part.

    Each rank calls it with its own part, in the order of the ranks, as `partition` cuts it; the
    outputs are those of the layer over the whole sequence, at the part's positions. Ranks tell
    each other a few states, the roots of their blocks: never tokens, and no more for longer parts.

    Gradients are those of the *sum of all ranks' losses*: each rank calls `backward` on its own
    (all must), and gets its share of the gradient of each weight; `sum_gradients` adds them up.

    `group=None` is the group of all processes. Under `DistributedDataParallel`, which averages
    gradients while others are still computed, give it a group of its own.

    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> layer = PRLSTM(3, 8, batch_first=True)
    >>> x = torch.randn(2, 10, 3)
    >>> out, state = SplitSequence(layer)(x)
    >>> torch.allclose(out, layer(x)[0], atol=1e-6)
    True
    >>> dist.destroy_process_group()
    """

    def __init__(self, layer: PRLSTM, group: dist.ProcessGroup | None = None) -> None:
        super().__init__()
        if not isinstance(layer, PRLSTM):
            raise TypeError(f"layer is a {type(layer).__name__}: expected a PRLSTM")
        if layer.bidirectional:
            raise ValueError(
                "layer is bidirectional: expected bidirectional=False; the reverse direction's "
                "blocks begin at the sequence's end, where no rank's part does"
            )
        self.layer, self.ranks = layer, Ranks(group)

    def forward(
        self, input: Tensor, hx: State | None = None, *, output: str = "all"
    ) -> tuple[Tensor, State]:
        """Outputs at every position of this rank's part, and the state after its last token.

        `input` is laid out as for the layer; but for the time, its shape is the same on every
        rank. `hx` is the state that the *whole* sequence goes on from, the same on every rank. The
        last rank's state is that of the whole sequence; what waits in it for later tokens has no
        history. With `output="last"` every rank gets h after the whole sequence, for fewer than T
        merges (in a single layer).

        Before anything is computed the ranks compare what they were given: where they disagree,
        or one refuses its arguments, all raise the same `ValueError`. A rank that is lost is a
        `RuntimeError` on the others, at the latest after the group's timeout.
        """
        device = next(self.layer.parameters()).device
        try:
            given = _read(self.layer, input, hx, output)
        except (TypeError, ValueError) as refused:
            # the others wait for what this rank says
            self.ranks.agree(0, refused, device)
            raise
        lengths = self.ranks.agree(given.batch.x.shape[TIME], given.said(self.layer), device)
        places = all_pieces(lengths, given.seen)
        reads = self._run(given, places)
        out = reads[-1].h
        if given.last:
            out = out.squeeze(TIME)
            return (out if given.batch.batched else out.squeeze(0)), self._state(given, reads)
        return cast(Tensor, given.batch.laid_out(out)), self._state(given, reads)

    def _run(self, given: "_Given", places: tuple[tuple[Piece, ...], ...]) -> list[Read]:
        """What each layer gave."""
        layer, x = self.layer, given.batch.x
        reads: list[Read] = []
        for k, reader in enumerate(layer.readers()):
            if k > 0:
                x = F.dropout(x, layer.dropout, layer.training)
            # the layers below the top one owe it every position
            last = given.last and k == layer.num_layers - 1
            carry, trained = given.carry(k), is_trained(layer.layers[k])
            reads.append(
                read_part(reader, x, carry, places, self.ranks, last=last, trained=trained)
            )
            x = reads[-1].h
        return reads

    def _state(self, given: "_Given", reads: list[Read]) -> State:
        """The state after this rank's part."""
        finals = zip(*(one.final for one in reads), strict=True)
        state = State(
            final=tuple(torch.stack(tensors).squeeze(2) for tensors in finals),
            pending=tuple(Pending(one.carry.blocks, one.carry.folds) for one in reads),
            seen=reads[0].carry.count,
            cell=self.layer.cell,
            batched=given.batch.batched,
        )
        # gradients of these would have to find their way to the ranks before
        return replace(state.detach(), final=state.final)


@dataclass(frozen=True)
class _Given:
    """What a rank was called with."""

    batch: Batch
    hx: State | None
    last: bool

    @property
    def seen(self) -> int:
        """Leaves before the sequence."""
        if self.hx is None:
            return 0
        assert isinstance(self.hx.seen, int)
        return self.hx.seen

    def carry(self, layer: int) -> Carry:
        """Where a layer begins."""
        return Carry() if self.hx is None else self.hx.pending[layer].carry(self.seen)

    def said(self, layer: PRLSTM) -> Said:
        """What must be the same on every rank, by the names that errors use."""
        x = self.batch.x
        said: dict[str, str | int | bool] = {
            "batch": x.shape[0],
            "batched": self.batch.batched,
            "input type": str(x.dtype),
            "weights' type": str(next(layer.parameters()).dtype),
            "input_size": layer.input_size,
            "hidden_size": layer.hidden_size,
            "num_layers": layer.num_layers,
            "refine": layer.refine,
            "cell": layer.cell,
            "output": "last" if self.last else "all",
            "leaves before": self.seen,
            # ranks that go backward exchange gradients, layer by layer
            "gradient of input": torch.is_grad_enabled() and x.requires_grad,
        }
        for k, cell in enumerate(layer.layers):
            said[f"gradient of weights of layer {k}"] = is_trained(cell)
            said[f"gradient of hx of layer {k}"] = torch.is_grad_enabled() and any(
                tensor.requires_grad for tensor in self._kept(k)
            )
        return said

    def _kept(self, layer: int) -> list[Tensor]:
        """What a layer goes on from."""
        if self.hx is None:
            return []
        pending = self.hx.pending[layer]
        return [
            t for half in (pending.blocks, pending.folds) for node in half if node for t in node
        ]


def is_trained(cell: nn.Module) -> bool:
    """Whether a gradient of some weight is wanted."""
    return torch.is_grad_enabled() and any(weight.requires_grad for weight in cell.parameters())


def _read(layer: PRLSTM, input: Tensor, hx: State | None, output: str) -> _Given:
    """What the user gave, or an error."""
    if not isinstance(input, Tensor):
        raise TypeError(f"input is a {type(input).__name__}: expected a tensor")
    if output not in ("all", "last"):
        raise ValueError(f"output={output!r}: expected 'all' or 'last'")
    if hx is not None and not isinstance(hx, State):
        raise TypeError(
            f"hx is a {type(hx).__name__}: expected a State; a plain (h, c) is one more leaf, "
            "which would displace every block"
        )
    batch = read_batch(input, None, layer.input_size, layer.batch_first)
    weight = next(layer.parameters())
    batch.check_type(weight)
    if hx is not None:
        sizes = cast(Cell, layer.layers[0]).state_sizes
        rows = batch.x.shape[0]
        StateShape(layer.cell, layer.num_layers, 1, rows, batch.batched, sizes).check(hx, weight)
        if not isinstance(hx.seen, int):
            raise ValueError(f"hx={hx!r}: expected rows that all stand at one count")
    return _Given(batch, hx, output == "last")
