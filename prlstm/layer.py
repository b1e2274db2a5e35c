"""PRLSTM, the layer: tokens become states, the tree merges them, h comes out."""

import warnings
from dataclasses import replace
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence

from prlstm.cells import Cell, CellFactory, build_cell
from prlstm.direction import Run, run, run_both
from prlstm.dispatch import Backend, Reader
from prlstm.inputs import (
    Active,
    Batch,
    Lengths,
    Output,
    Window,
    read_active,
    read_batch,
    read_tokens,
    read_window,
)
from prlstm.lengths import TIME
from prlstm.long import read_in_pieces
from prlstm.state import State, join
from prlstm.state_shape import PlainState, StateShape
from prlstm.step import begin, step
from prlstm.tree import Carry, Sweep
from prlstm.tree.rows import Pending


class PRLSTM(nn.Module):
    """A recurrent layer of logarithmic parallel depth, in the place of `torch.nn.LSTM`.

    Arguments up to `bidirectional` are those of `torch.nn.LSTM`. `refine` is the number of
    refinements after each composition; `cell` is "lstm", "relu" (PR-RNN), "gru" (which takes
    `refine=0`), or a cell class of your own (see `prlstm.Cell`).

    On a CUDA device the LSTM cell is computed by fused kernels where products are in half
    precision or TF32; `backend` "eager" or "triton" forces plain PyTorch or the kernels. With
    `checkpoint`, training keeps the states of all nodes but not their gates, which are computed
    once more in the backward pass: less memory for more time.

    >>> layer = PRLSTM(input_size=3, hidden_size=8, batch_first=True)
    >>> x = torch.randn(2, 10, 3)
    >>> out, state = layer(x)
    >>> h_n, c_n = state
    >>> out.shape, h_n.shape
    (torch.Size([2, 10, 8]), torch.Size([1, 2, 8]))
    >>> head, state = layer(x[:, :6])
    >>> tail, state = layer(x[:, 6:], state)
    >>> torch.allclose(torch.cat([head, tail], 1), out, atol=1e-6)
    True
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        refine: int = 1,
        cell: str | CellFactory = "lstm",
        backend: str | None = None,
        checkpoint: bool = False,
        proj_size: int = 0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        for name, size, least in (
            ("input_size", input_size, 1),
            ("hidden_size", hidden_size, 1),
            ("num_layers", num_layers, 1),
            ("refine", refine, 0),
        ):
            if not isinstance(size, int) or isinstance(size, bool) or size < least:
                raise ValueError(f"{name}={size!r}: expected an integer >= {least}")
        for name, flag in (
            ("bias", bias),
            ("batch_first", batch_first),
            ("bidirectional", bidirectional),
        ):
            if not isinstance(flag, bool):
                raise ValueError(f"{name}={flag!r}: expected True or False")
        number = isinstance(dropout, (int, float)) and not isinstance(dropout, bool)
        if not number or not 0 <= dropout <= 1:
            raise ValueError(f"dropout={dropout!r}: expected a probability in [0, 1]")
        if proj_size != 0:
            raise ValueError(f"proj_size={proj_size!r}: PRLSTM has no projections, expected 0")
        if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
            raise ValueError(f"dtype={dtype!r}: expected a floating-point type of torch")
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                f"dropout={dropout} does nothing with num_layers=1: it acts between layers",
                stacklevel=2,
            )
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size, self.refine = bidirectional, 0, refine
        self.backend, self.checkpoint = backend, checkpoint
        how = Backend(backend, checkpoint)
        if how.name == "triton" and cell != "lstm":
            raise ValueError(f"backend='triton': expected cell='lstm', got cell={cell!r}")
        self.layers = nn.ModuleList()
        size = input_size
        for _ in range(num_layers):
            made = [
                build_cell(
                    cell, size, hidden_size, refine=refine, bias=bias, device=device, dtype=dtype
                )
                for _ in range(1 + bidirectional)
            ]
            if bidirectional:
                # inside the forward cell, so that its keys are layers.{k}.reverse.*
                made[0].add_module("reverse", made[1])
            self.layers.append(made[0])
            size = hidden_size * (1 + bidirectional)
        self.cell = cell if isinstance(cell, str) else type(self.layers[0]).__name__

    def reset_parameters(self) -> None:
        """Draw all weights anew, as the paper's implementation draws them."""
        for module in self.modules():
            reset = getattr(module, "reset_parameters", None)
            if module is not self and callable(reset):
                reset()

    def flatten_parameters(self) -> None:
        """Does nothing: code written for `torch.nn.LSTM` calls it."""

    def forward(
        self,
        input: Tensor | PackedSequence,
        hx: State | PlainState | None = None,
        *,
        lengths: Lengths | None = None,
        output: Output = "all",
    ) -> tuple[Tensor | PackedSequence, State]:
        """Outputs h at every position asked for, and the state after the last token read.

        `input` is (T, B, D), (B, T, D) with `batch_first`, (T, D), or packed. Integers are ids of
        one-hot tokens, without the last dimension: (T, B), (B, T) or (T,); blocks of few different
        ids are then computed once and looked up. `lengths` gives
        the true length of each row of a padded batch: outputs behind it are zero, and what
        stands there must be finite. `hx` is a `State` to go on from, or a plain `(h, c)` as
        `torch.nn.LSTM` takes it: one more leaf before the first token.

        `output="last"` gives only the last state's h, (B, directions * H); in a single layer and
        for equal lengths that takes T - 1 merges instead of almost 2T. `output=(start, stop)`
        gives only those positions, for the work that they need: tokens from `stop` on are not
        looked at, so the state is the one after `stop` tokens. (Of a bidirectional layer the
        top reads forward up to `stop` and back down to `start`, the layers below everything;
        each part of the state is the one after the last token that was read.)
        """
        batch = read_batch(input, lengths, self.input_size, self.batch_first)
        window = read_window(output, batch)
        weight = next(self.parameters(), batch.x)
        batch.check_type(weight)
        shape = self._state_shape(batch)
        if isinstance(hx, State):
            shape.check(hx, weight)
            out, state = self._go_on(batch, hx, window)
        else:
            out, state = self._run_together(batch, shape.first_carries(hx, weight), window)
        if window.last:
            return (out if batch.batched else out.squeeze(0)), state
        return batch.laid_out(out), state

    def step(
        self,
        x: Tensor,
        state: State | PlainState | None = None,
        active: Active | None = None,
    ) -> tuple[Tensor, State]:
        """H (B, H) after one more token for every row, and the state that goes on from there.

        `x` is (B, D), ids (B,), or one token (D,) or id () alone. Rows may stand at different
        counts: that costs no more than equal ones, under 2 merges a token over many steps.
        `active` (B,) tells which rows have a token: the others keep their state, and give their
        last h again, or zeros where they never had a token. All the rest is as when the layer is
        called: `layer.step(x, state)` equals `layer(x[:, None], state, output="last")`.

        `prlstm.Streams` does this in place, for a server that feeds many streams.

        >>> layer = PRLSTM(input_size=3, hidden_size=8)
        >>> h, state = layer.step(torch.randn(2, 3))
        >>> h, state = layer.step(torch.randn(2, 3), state, active=[True, False])
        >>> h.shape, state.counts
        (torch.Size([2, 8]), (2, 1))
        """
        if self.bidirectional:
            raise ValueError(
                "step: this layer is bidirectional, expected bidirectional=False: "
                "the reverse direction of a sequence begins at its end"
            )
        batch = read_tokens(x, self.input_size)
        weight = next(self.parameters(), batch.x)
        batch.check_type(weight, "x")
        chosen = read_active(active, len(batch.x))
        shape = replace(self._state_shape(batch), name="state")
        if isinstance(state, State):
            shape.check(state, weight)
        else:
            state = self._begun(state, shape, weight)
        h, after = step(self.readers(), self._between, batch.x, state, chosen)
        return (h if batch.batched else h.squeeze(0)), after

    def trace(self, input: Tensor) -> tuple[Sweep, ...]:
        """Every node of every tree, one `Sweep` for each layer and direction.

        Of a sweep, `blocks[k]` holds the states of all blocks of 2^k tokens (`blocks[0]` the
        leaves), `prefixes[0]` those after each token and `prefixes[k]` those after each block
        of 2^k: tuples of tensors (B, nodes, H). `plan` says how they were merged. The reverse
        direction stands in its own reading order.
        """
        if not isinstance(input, Tensor):
            raise TypeError(f"input is a {type(input).__name__}: expected a tensor, padded or not")
        batch = read_batch(input, None, self.input_size, self.batch_first)
        batch.check_type(next(self.parameters(), batch.x))
        carries = self._state_shape(batch).first_carries(None, batch.x)
        window = read_window("all", batch)
        runs = self._run(self.readers(), batch, carries, window, every=True)
        return tuple(one.done for one in runs)

    def extra_repr(self) -> str:
        """What `repr` says inside the brackets."""
        said = [str(self.input_size), str(self.hidden_size), f"cell={self.cell}"]
        said.append(f"refine={self.refine}")
        defaults = {
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0.0,
            "bidirectional": False,
            "backend": None,
            "checkpoint": False,
        }
        for name, usual in defaults.items():
            if getattr(self, name) != usual:
                said.append(f"{name}={getattr(self, name)}")
        return ", ".join(said)

    def _state_shape(self, batch: Batch) -> StateShape:
        return StateShape(
            cell=self.cell,
            layers=self.num_layers,
            directions=1 + self.bidirectional,
            rows=batch.x.shape[0],
            batched=batch.batched,
            sizes=cast(Cell, self.layers[0]).state_sizes,
        )

    def _begun(self, hx: PlainState | None, shape: StateShape, weight: Tensor) -> State:
        """The state before the first token, where `hx` is one leaf."""
        start = begin(self.num_layers, self.cell, batched=shape.batched)
        if hx is None:
            return start
        carries = shape.first_carries(hx, weight)
        leaves = zip(*(carry.fold(0) for carry in carries), strict=True)
        return replace(
            start,
            final=tuple(torch.stack(tensors).squeeze(2) for tensors in leaves),
            pending=tuple(Pending(carry.blocks, carry.folds) for carry in carries),
            seen=1,
        )

    def readers(self) -> list[Reader]:
        """The layers as what reads tokens, in the forward direction: what `Streams` works with."""
        backend = Backend(self.backend, self.checkpoint)
        below = self.hidden_size * (1 + self.bidirectional)
        sizes = [self.input_size] + [below] * (self.num_layers - 1)
        return [
            Reader(cast(Cell, layer), size, backend)
            for layer, size in zip(self.layers, sizes, strict=True)
        ]

    def _between(self, x: Tensor) -> Tensor:
        """What a layer puts out, as the next one reads it."""
        return F.dropout(x, self.dropout, self.training)

    def _run_together(
        self, batch: Batch, carries: list[Carry], window: Window
    ) -> tuple[Tensor, State]:
        """Run rows that all stand at one count: (B, positions, H) or (B, H), and the state."""
        batch = batch.trimmed()
        there = window.within(batch.x.shape[TIME])
        readers = self.readers()
        pieces = self._pieces(readers[0], batch, carries[0].count, there)
        if len(pieces) > 1:
            readers[0] = readers[0].prepared(batch.x)
        out, state = read_in_pieces(partial(self._read, readers), batch, carries, there, pieces)
        if window.last:
            return torch.cat(state.final[0][-1 - self.bidirectional :].unbind(), -1), state
        return window.fill(out, there.start), state

    def _pieces(self, reader: Reader, batch: Batch, count: int, window: Window) -> list[range]:
        """The pieces that all layers read together."""
        x = batch.x[:, : window.stop]
        if self.bidirectional:
            # the reverse direction begins at the end
            return [range(x.shape[TIME])]
        # the layers below the top one owe it every position, and a row its end
        first = window.start if self.num_layers == 1 else 0
        if batch.lengths is not None:
            first = min(first, min(batch.lengths.host) - 1)
        return reader.pieces(x, reader.words(x), count, first)

    def _read(
        self, readers: list[Reader], batch: Batch, carries: list[Carry], window: Window
    ) -> tuple[Tensor, State]:
        """H (B, positions, directions * H) in the window, and the state."""
        runs = self._run(readers, batch, carries, window)
        finals = zip(*(one.final for one in runs), strict=True)
        state = State(
            final=tuple(torch.stack(tensors) for tensors in finals),
            pending=() if self.bidirectional else tuple(one.pending for one in runs),
            seen=runs[-1 - self.bidirectional].seen,
            cell=self.cell,
            batched=batch.batched,
        )
        return self._side_by_side(runs), state

    def _go_on(self, batch: Batch, state: State, window: Window) -> tuple[Tensor, State]:
        """Run every row from where it stands, those that stand at one count together."""
        if isinstance(state.seen, int):
            return self._run_together(batch, [p.carry(state.seen) for p in state.pending], window)
        outs, states, taken = [], [], []
        for count in sorted(set(state.seen)):
            rows = [row for row, seen in enumerate(state.seen) if seen == count]
            carries = [p.carry(count) for p in state.rows(rows).pending]
            out, after = self._run_together(batch.rows(rows), carries, window)
            outs.append(out)
            states.append(after)
            taken += rows
        order = sorted(range(len(taken)), key=taken.__getitem__)
        return torch.cat(outs)[order], join(states, order)

    def _run(
        self,
        readers: list[Reader],
        batch: Batch,
        carries: list[Carry],
        window: Window,
        *,
        every: bool = False,
    ) -> list[Run]:
        """All layers, each direction of each: the top ones put out what `window` asks for.

        With `every`, all nodes of all trees are kept.
        """
        x, lengths = batch.x, batch.lengths
        if not self.bidirectional:
            x = x[:, : window.stop]
            lengths = None if lengths is None else lengths.clip(window.stop)
        runs: list[Run] = []
        for k, reader in enumerate(readers):
            # the layers below the top one owe it every position
            top = k == self.num_layers - 1
            read = range(window.start, window.stop) if top else range(x.shape[TIME])
            if k > 0:
                x = self._between(x)
            if self.bidirectional:
                cell = self.layers[k].get_submodule("reverse")
                reverse = Reader(cast(Cell, cell), reader.input_size, reader.backend)
                earlier = (carries[2 * k], carries[2 * k + 1])
                asked = None if top and window.last else read
                both = run_both(reader, reverse, x, lengths, earlier, asked, every=every)
                runs += both
            else:
                first = read.start
                runs.append(run(reader, x, lengths, carries[k], first, every=every))
            if not top:
                x = self._side_by_side(runs)
        return runs

    def _side_by_side(self, runs: list[Run]) -> Tensor:
        """The outputs of the last layer that ran, both directions of it."""
        if self.bidirectional:
            return torch.cat([one.h for one in runs[-2:]], -1)
        return runs[-1].h
