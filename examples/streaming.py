"""One layer, three ways to feed it: whole, in chunks, token by token."""

import time
from collections.abc import Iterable

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

import prlstm
from prlstm.tree import Plan

TOKENS, FEATURES, HIDDEN, CHUNK = 4_000, 8, 64, 512
SHORT = 13


class MergeCounter:
    """Counts what the composition block is asked to do."""

    def __init__(self, layer: prlstm.PRLSTM) -> None:
        self.calls = self.merges = 0
        layer.layers[0].compose.register_forward_pre_hook(self._count)

    def _count(self, module: torch.nn.Module, inputs: tuple[Tensor, ...]) -> None:
        self.calls += 1
        self.merges += inputs[0][..., 0].numel()


def feed(layer: prlstm.PRLSTM, pieces: Iterable[Tensor]) -> tuple[Tensor, prlstm.State | None]:
    """Run the layer over the pieces of a sequence, handing the state from one to the next."""
    outs, state = [], None
    for piece in pieces:
        out, state = layer(piece, state)
        outs.append(out)
    return torch.cat(outs, 1), state


def main() -> None:
    """Show that the three ways agree, and what each costs."""
    console = Console()
    torch.manual_seed(0)
    # small matrices: more threads would only wait for each other on a busy machine
    torch.set_num_threads(1)
    layer = prlstm.PRLSTM(FEATURES, HIDDEN, batch_first=True)
    x = torch.randn(1, TOKENS, FEATURES)
    console.print(f"\n[bold]prlstm {prlstm.__version__}[/]: {TOKENS:,} tokens through one layer\n")
    console.print(layer)
    console.print(
        "\nA merge makes one state of two neighbours; a call merges many pairs at once.\n"
    )
    table = Table(
        title=f"{TOKENS:,} tokens, hidden size {HIDDEN}, 1 CPU thread", title_style="bold"
    )
    for name in ("fed", "time", "merges", "calls", "states kept", "differs by"):
        table.add_column(name, justify="left" if name == "fed" else "right")
    counter = MergeCounter(layer)
    with torch.no_grad():
        # the first call of a process sets things up
        layer(x[:, :64])
        whole: Tensor | None = None
        for name, pieces in (
            ("whole", [x]),
            (f"in chunks of {CHUNK}", x.split(CHUNK, 1)),
            ("token by token", x.split(1, 1)),
        ):
            counter.calls = counter.merges = 0
            with console.status(f"fed {name}"):
                start = time.perf_counter()
                out, state = feed(layer, pieces)
                seconds = time.perf_counter() - start
            assert state is not None
            kept = sum(node is not None for levels in state.pending[0] for node in levels)
            difference = "-" if whole is None else f"{(out - whole).abs().max():.0e}"
            whole = out if whole is None else whole
            torch.testing.assert_close(out, whole)
            counted = (f"{counter.merges:,}", f"{counter.calls:,}", str(kept))
            table.add_row(name, f"{seconds:.2f} s", *counted, difference)
    console.print(table)
    console.print(
        "The three agree: one function, whatever the cuts. A stream keeps O(log T)\n"
        "states; a whole sequence takes O(log T) calls, each for a level of the tree.\n"
    )
    console.print(f"[bold]The tree of {SHORT} tokens[/]: up to blocks, down to every prefix")
    # plain print: the drawing is exactly as wide as it says
    print(Plan(SHORT).draw())


if __name__ == "__main__":
    main()
