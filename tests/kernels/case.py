"""Arguments of the gated block by name, and what the definition makes of them in float64."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from prlstm.cells import gated_block
from prlstm.kernels import gated
from tests.compare import TOLERANCE, assert_rel

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass
class Case:
    """One block of `states` incoming states, with `seeds` weights where that is not None."""

    states: int
    hidden: int
    lead: tuple[int, ...]
    seeds: int | None = None
    bias: bool = True
    dtype: torch.dtype = torch.float32
    # what h and c are views of: this many states for each one that is read
    spread: int = 1
    device: str = DEVICE
    leaves: dict[str, Tensor] = field(init=False)

    def __post_init__(self) -> None:
        first = () if self.seeds is None else (self.seeds,)
        size = self.hidden if self.states else 3
        rows, columns = (self.states + 3) * self.hidden, max(self.states, 1) * size
        wide = (*first, *self.lead[:-1], *(n * self.spread for n in self.lead[-1:]))
        made = {"weight": torch.randn(*first, rows, columns) / columns**0.5}
        if self.bias:
            made["bias"] = torch.randn(*first, rows)
        if self.spread > 1:
            made |= {"h": torch.randn(*wide, size), "c": torch.randn(*wide, self.hidden)}
        else:
            made |= {f"h{j}": torch.randn(*wide, size) for j in range(max(self.states, 1))}
            made |= {f"c{j}": torch.randn(*wide, self.hidden) for j in range(self.states)}
        self.leaves = {
            name: t.to(self.device, torch.float32 if name[0] == "c" else self.dtype)
            for name, t in made.items()
            # where all states are read from one tensor, a leaf reads no c
            if name != "c" or self.states
        }

    def arguments(self, leaves: dict[str, Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """What the block takes as h and c: with a spread, every second state as in a tree."""

        def views(name: str, count: int) -> list[Tensor]:
            if self.spread == 1:
                return [leaves[f"{name}{j}"] for j in range(count)]
            return [leaves[name][..., j :: self.spread, :] for j in range(count)]

        return views("h", max(self.states, 1)), views("c", self.states)

    def kernel(self, leaves: dict[str, Tensor], precision: str = "ieee") -> tuple[Tensor, Tensor]:
        return gated(
            *self.arguments(leaves), leaves["weight"], leaves.get("bias"), precision=precision
        )

    def definition(self, leaves: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        h, c = self.arguments(leaves)
        z, weight, bias = torch.cat(h, -1), leaves["weight"], leaves.get("bias")
        if self.seeds is None:
            return gated_block(z, c, weight, bias)
        each = [
            gated_block(z[s], [t[s] for t in c], weight[s], None if bias is None else bias[s])
            for s in range(self.seeds)
        ]
        return torch.stack([h for h, _ in each]), torch.stack([c for _, c in each])

    def values(
        self, function: str, dtype: torch.dtype | None, outputs: str = "hc", precision: str = "ieee"
    ) -> dict[str, Tensor]:
        """h, c and the gradient of every argument under a loss of the named outputs."""
        leaves = {
            name: t.detach().to(dtype or t.dtype).requires_grad_()
            for name, t in self.leaves.items()
        }
        h, c = self.kernel(leaves, precision) if function == "kernel" else self.definition(leaves)
        generator = torch.Generator().manual_seed(1)
        loss = torch.zeros((), device=self.device)
        for name, t in (("h", h), ("c", c)):
            weight = torch.randn(t.shape, generator=generator).to(t)
            if name in outputs:
                loss = loss + (t * weight).sum()
        loss.backward()
        given = {f"d{name}": t.grad for name, t in leaves.items() if t.grad is not None}
        return {"h": h.detach(), "c": c.detach(), **given}

    def check(
        self,
        outputs: str = "hc",
        precision: str = "ieee",
        tolerance: tuple[float, float] | None = None,
    ) -> None:
        """The kernel is the definition in float64, for the same rounded arguments."""
        got = self.values("kernel", None, outputs, precision)
        want = self.values("definition", torch.float64, outputs)
        assert set(got) == set(want)
        forward, backward = tolerance or TOLERANCE[self.dtype]
        for name, t in want.items():
            assert_rel(name, got[name], t, backward if name[0] == "d" else forward)
