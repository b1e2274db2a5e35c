"""Many streams at a time by kernels: launches that depend on no count and on no mask.

What a step merges is told by a few integers, which are copied to the device; so the launches are
captured once, as a CUDA graph, and replayed. Of a level that few rows reach, or none, a launch
costs little: its programs look how many rows there are, and those behind the last one return.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from prlstm.kernels import launch
from prlstm.kernels.choose import Products
from prlstm.kernels.nodes import compact
from prlstm.kernels.places import Counted, Shape
from prlstm.kernels.stages import Pair, Stages
from prlstm.kernels.tree import CellWeights
from prlstm.kernels.weights import ALIGNMENT
from prlstm.tree import Node
from prlstm.tree.streams import Increment

# levels that there is room for at first; more are made when somebody needs them
FIRST_LEVELS = 8
# in front of a plan: how many rows have a token, and how many merge at each level
HEAD = 64
# plans that may be on their way to the device
PLANS = 2


class Plans:
    """The integers of a step on the device, copied there while the host goes on.

    They are the counts; and for every row, in the order of the plan, its slot, the place where its
    new block waits, and that of the prefix before it, or -1. A place is a level's, then a slot's.
    """

    def __init__(self, rows: int, device: torch.device) -> None:
        # every part begins where 16 bytes do
        self.rows, self.stride = rows, -(-rows // 4) * 4
        length = HEAD + 3 * self.stride
        self.numbers = torch.zeros(length, dtype=torch.int32, device=device)
        self.counts = self.numbers[:HEAD]
        self.slots, self.stops, self.folds = self.numbers[HEAD:].view(3, self.stride)
        is_cuda = device.type == "cuda"
        self._host = [
            torch.zeros(length, dtype=torch.int32, pin_memory=is_cuda) for _ in range(PLANS)
        ]
        events = PLANS if is_cuda else 0
        self._copied = [torch.cuda.Event() for _ in range(events)]  # type: ignore[no-untyped-call]
        self._next = 0

    def put(self, plan: Increment) -> None:
        """Make this the plan of the next launches."""
        here, self._next = self._next, (self._next + 1) % PLANS
        if self._copied:
            self._copied[here].synchronize()
        numbers, active = self._host[here].numpy(), len(plan.order)
        numbers[0], numbers[1:HEAD] = active, 0
        numbers[1 : 1 + len(plan.merging)] = plan.merging
        slots, stops, folds = (
            numbers[HEAD + k * self.stride : HEAD + k * self.stride + active] for k in range(3)
        )
        slots[:] = plan.order
        stops[:] = plan.stops * self.rows + plan.order
        folds[:] = np.where(plan.above < 0, -1, plan.above * self.rows + plan.order)
        self.numbers.copy_(self._host[here], non_blocking=True)
        if self._copied:
            self._copied[here].record()


@dataclass
class Layer:
    """What one layer keeps of all streams: h and c, (levels, rows, size) each."""

    blocks: tuple[Tensor, Tensor]
    folds: tuple[Tensor, Tensor]


class KernelSlots:
    """The streams of an LSTM layer, each in a slot of its own.

    `cells` gives the weights of every layer, as they are now.
    """

    def __init__(
        self, cells: Callable[[], Sequence[CellWeights]], products: Products, rows: int
    ) -> None:
        first, *_ = layers = cells()
        weight = first.weights[0]
        self.rows, self.products, self.hidden_size = rows, products, first.hidden_size
        self.levels, self.room = 1, FIRST_LEVELS
        self._cells, self._dtype, self._device = cells, weight.dtype, weight.device
        size, width = (-(-n // ALIGNMENT) * ALIGNMENT for n in (self.hidden_size, weight.shape[1]))
        self._h = weight.new_zeros(rows, size, dtype=products.operand)
        self._x = weight.new_zeros(rows, width, dtype=products.operand)
        self._known = torch.arange(width, device=weight.device)
        self._plans = Plans(rows, weight.device)
        self._layers = [Layer(self._pool(), self._pool()) for _ in layers]
        self._graph: torch.cuda.CUDAGraph | None = None
        self._captured: tuple[int, ...] = ()

    @property
    def h(self) -> Tensor:
        """The last h of every stream, (rows, H): a view."""
        return self._h[:, : self.hidden_size]

    def waiting(self, layer: int) -> tuple[list[Node], list[Node]]:
        """Blocks and prefixes of every level, (rows, H) each: views."""
        here = self._layers[layer]
        blocks, folds = (
            [tuple(t[k, :, : self.hidden_size] for t in pool) for k in range(self.levels)]
            for pool in (here.blocks, here.folds)
        )
        return blocks, folds

    def grow(self, levels: int) -> None:
        """Have so many levels, or more."""
        if levels <= self.levels:
            return
        self.levels, self._graph = levels, None
        if levels > self.room:
            self.room = max(levels, 2 * self.room)
            for layer in self._layers:
                layer.blocks = self._copied(layer.blocks)
                layer.folds = self._copied(layer.folds)

    def step(self, x: Tensor, plan: Increment) -> Tensor:
        """H (rows, H) after one more token `x` (rows, D), or id (rows,), of some rows."""
        with torch.cuda.device(self._device if self._device.type == "cuda" else -1):
            cells = self._cells()
            if self._device.type == "cuda":
                self._capture(cells)
            if x.is_floating_point():
                self._x[:, : x.shape[1]].copy_(x)
            else:
                self._x.copy_(x[:, None] == self._known)
            self._plans.put(plan)
            if self._graph is None:
                self._launch(cells)
            else:
                self._graph.replay()
            return self.h.to(self._dtype, copy=True)

    def _capture(self, cells: Sequence[CellWeights]) -> None:
        """Have a graph of all launches, for the memory in use and the weights where they are."""
        places = tuple(t.data_ptr() for cell in cells for t in (*cell.weights, *cell.biases))
        if self._graph is not None and self._captured == places:
            return
        self._graph = None
        # no row has a token: the kernels are compiled and loaded, and nothing is changed
        self._plans.numbers.zero_()
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._launch(cells)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._launch(cells)
        self._graph, self._captured = graph, places

    def _launch(self, cells: Sequence[CellWeights]) -> None:
        """One step of all layers; what they read and write stands at fixed places."""
        for k, (layer, cell) in enumerate(zip(self._layers, cells, strict=True)):
            # in tiles anew each time: whoever changes a weight need not tell, and it is little work
            stages = Stages(*cell.stacked(), *self.products)
            self._launch_layer(layer, stages, self._x if k == 0 else self._h)

    def _launch_layer(self, layer: Layer, stages: Stages, x: Tensor) -> None:
        shape, plans = Shape(1, 1, self.rows), self._plans
        made, folded = self._states(), self._states()
        block, prefix = _pair(made), _pair(folded)
        between = stages.between(self._h, self.rows, gates=False)
        every = Counted(plans.counts, 0, self.rows, plans.slots)
        stages.leaf(x[None, None], block, None, every)
        for level in range(self.levels - 1):
            some = Counted(plans.counts, 1 + level, self.rows >> level + 1, plans.slots)
            left = _pair((layer.blocks[0][level], layer.blocks[1][level]))
            if len(stages.weights) > 2:
                stages.merge(left, block, block, between, shape, counted=some)
            else:
                # programs that compose read what others of them write
                stages.merge(left, block, prefix, between, shape, counted=some)
                launch.copy_states(folded, made, some)
        above = _pair((layer.folds[0].flatten(0, 1), layer.folds[1].flatten(0, 1)))
        stages.merge(
            above, block, prefix, between, shape, counted=every._replace(places=plans.folds)
        )
        launch.put_states(
            made, folded, plans.slots, plans.stops, plans.folds,
            layer.blocks, layer.folds, self._h, every,
        )  # fmt: skip

    def _states(self) -> tuple[Tensor, Tensor]:
        """Memory for a state of every row."""
        h, c = (
            launch.empty(self._h, self._h.shape, kind)
            for kind in (self.products.operand, torch.float32)
        )
        return h, c

    def _pool(self) -> tuple[Tensor, Tensor]:
        """Memory for a state of every row at every level; features that are padding must be 0."""
        shape = (self.room, *self._h.shape)
        return self._h.new_zeros(shape), self._h.new_zeros(shape, dtype=torch.float32)

    def _copied(self, pool: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """The same states in more memory."""
        grown = self._pool()
        for new, old in zip(grown, pool, strict=True):
            new[: len(old)] = old
        return grown


def _pair(states: tuple[Tensor, Tensor]) -> Pair:
    """H and c, (rows, size) each, as kernels find them."""
    h, c = (compact(t[None], 0, len(t)) for t in states)
    return h, c
