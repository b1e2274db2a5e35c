"""Steps of training as CUDA graphs: one for each length of the words, all in one memory."""

from collections.abc import Callable

import torch
from torch import Tensor


class CapturedSteps:
    """Steps, functions of the length that change everything in place, and are replayed ever after.

    The first step of a length runs operation by operation, which also makes ready all that a graph
    may not make, and is captured then. A step that cannot be captured goes on running so; `say` is
    told why.
    """

    def __init__(self, device: torch.device, say: Callable[[str], None]) -> None:
        self.device, self.say = device, say
        self.spare = torch.zeros((), device=device)
        self.graphs: dict[int, tuple[torch.cuda.CUDAGraph, Tensor]] = {}
        # libraries make ready for each stream
        self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self.pool = torch.cuda.graph_pool_handle()
        self.is_possible = True

    def __call__(self, step: Callable[[int], Tensor], length: int) -> Tensor:
        """What `step`, always the same, gives at this length; it is made."""
        with torch.cuda.device(self.device):
            return self._made(step, length)

    def _made(self, step: Callable[[int], Tensor], length: int) -> Tensor:
        if length in self.graphs:
            graph, made = self.graphs[length]
            graph.replay()
            return made.clone()
        if not self.is_possible:
            return step(length)
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            made = step(length)
        torch.cuda.current_stream().wait_stream(self.stream)
        self._capture(step, length)
        return made

    def _capture(self, step: Callable[[int], Tensor], length: int) -> None:
        graph = torch.cuda.CUDAGraph()
        try:
            # the backward pass has a thread of its own
            with torch.cuda.graph(graph, self.pool, self.stream, "thread_local"):
                made = step(length)
        except Exception as refused:
            self.is_possible = False
            why = str(refused.__context__ or refused).partition("\n")[0]
            self._recover()
            self.say(f"steps are not captured, and so slower: {why}")
            return
        self.graphs[length] = graph, made

    def _recover(self) -> None:
        """A capture that broke off leaves PyTorch's random numbers in the midst of one: end it."""
        with torch.cuda.graph(torch.cuda.CUDAGraph(), stream=self.stream):
            self.spare.zero_()
