"""The kernels on a CUDA device: the gated block alone, and whole trees against cuDNN's LSTM.

    python benchmarks/kernels.py                  # all parts
    python benchmarks/kernels.py block latency    # some of them

A row is `called` from Python, `captured` in a CUDA graph and replayed, or called after
`torch.compile(mode="reduce-overhead")`, which captures too; cuDNN's LSTM is called and captured.
Errors are those of what is timed, at its full size and in the same run: some rows of the batch are
compared with float64 on fresh random inputs, and for gradients only these rows have a loss. Prints
a line for each row, and appends the rows to `--out`.
"""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import torch
import typer
from measure import Row, append_rows, environment, milliseconds, peak_bytes
from torch import Tensor, nn

from prlstm import PRLSTM
from prlstm.cells import LSTMCell, gated_block
from prlstm.dispatch import weights_of
from prlstm.kernels import launch
from prlstm.kernels.choose import Products
from prlstm.kernels.nodes import compact
from prlstm.kernels.places import Shape, States
from prlstm.kernels.stages import Stages
from prlstm.kernels.tree import sweep_lstm_ids
from prlstm.tree import Carry, Words

RESULTS = Path(__file__).parent / "results" / "kernels.jsonl"
DEVICE = torch.device("cuda")
HIDDEN, FEATURES, VOCABULARY, ROWS = 256, 8, 3, 1 << 20
# rows of the batch whose results are compared with float64
COMPARED = 2
# up to so many rows of a batch the host's launches take longer than the device
FEW_ROWS = 128
Made = TypeVar("Made")


def relative_error(got: Tensor, want: Tensor) -> float:
    """Root mean square of the difference, over that of what is wanted."""
    return float(((got.double() - want).norm() / want.norm()).item())


def captured(call: Callable[[], Made]) -> Callable[[], Made]:
    """The same work as a CUDA graph; what a replay makes stands in the same memory each time."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = call()

    def replay() -> Made:
        graph.replay()
        return made

    return replay


def measured(call: Callable[[], object], **known: object) -> Row:
    """One row: time and memory of a call."""
    return {**known, **milliseconds(call, DEVICE), "peak_bytes": peak_bytes(call, DEVICE)}


def layer_of(hidden: int, dtype: torch.dtype, **options: object) -> PRLSTM:
    """A layer for random tokens."""
    given = {"batch_first": True, "device": DEVICE, "dtype": dtype} | options
    return PRLSTM(FEATURES, hidden, **given)  # type: ignore[arg-type]


def block() -> list[Row]:
    """The gated block on states as the tree keeps them in memory."""
    cases = [(256, n, torch.bfloat16, "ieee") for n in (2, 1, 0)]
    cases += [(137, n, torch.bfloat16, "ieee") for n in (2, 1)]
    cases += [(256, 2, torch.float16, "ieee"), (256, 2, torch.float32, "tf32")]
    cases += [(256, 2, torch.float32, "ieee")]
    return [_block(*case) for case in cases]


def _block(hidden: int, states: int, operand: torch.dtype, precision: str) -> Row:
    cell = LSTMCell(hidden, hidden, refine=1, device=DEVICE)
    stages = Stages(*weights_of(cell).stacked(), operand, precision)
    which = (0, 2, 1)[states]
    inputs, size = max(states, 1), stages.size
    h, c = (torch.randn(1, ROWS, inputs, size, device=DEVICE) for _ in range(2))
    h[..., hidden:] = c[..., hidden:] = 0
    h = h.to(operand)
    new_h, new_c = (torch.empty(1, ROWS, size, device=DEVICE, dtype=t.dtype) for t in (h, c))

    def places(t: Tensor, count: int) -> list[States]:
        step = inputs * size
        return [States(t, (0, 0, step, j * size, j * size)) for j in range(count)]

    def call() -> None:
        launch.forward(
            places(h, inputs), places(c, states), stages.tiled[which],
            compact(new_h, 0, ROWS), compact(new_c, 0, ROWS), None, Shape(1, 1, ROWS),
            precision=precision,
        )  # fmt: skip

    new_h.fill_(torch.nan)
    new_c.fill_(torch.nan)
    call()
    last = slice(-500, None)
    module = (cell.leaf, cell.refine[0], cell.compose)[states]
    z, weight = h[0, last, :, :hidden].flatten(1).double(), module.weight.to(operand).double()
    cells = [c[0, last, j, :hidden].double() for j in range(states)]
    want = gated_block(z, cells, weight, module.bias.double())
    errors = [
        relative_error(t[0, last, :hidden], other)
        for t, other in zip((new_h, new_c), want, strict=True)
    ]
    flops = 2 * ROWS * module.weight.numel()
    name = "float32" if operand == torch.float32 else str(operand).removeprefix("torch.")
    row = measured(
        captured(call), what=f"block n={states}", hidden_size=hidden, rows=ROWS, how="captured",
        precision=precision if name == "float32" else name, error=max(errors),
    )  # fmt: skip
    return row | {"tflops": round(flops / row["ms"] / 1e9, 1)}


def lookup() -> list[Row]:
    """Tokens to the last state: leaves looked up, everything above them computed."""
    batch, length = 1024, 2048
    cell = LSTMCell(VOCABULARY, HIDDEN, refine=1, device=DEVICE)
    codes = torch.randint(VOCABULARY, (batch, length), device=DEVICE)
    eye = torch.eye(VOCABULARY, device=DEVICE)
    products = Products(torch.bfloat16, "ieee")

    @torch.no_grad()
    def call() -> Tensor:
        words = Words(VOCABULARY, length)
        done = sweep_lstm_ids(codes, words, weights_of(cell), products, Carry(), length - 1, most=0)
        return done.read[0]

    layer = layer_of(HIDDEN, torch.float64, backend="eager")
    layer.layers[0] = copy.deepcopy(cell).double()
    layer.input_size = VOCABULARY
    with torch.no_grad():
        want = layer(eye.double()[codes[:COMPARED]], output="last")[0]
    known = {"batch": batch, "length": length, "hidden_size": HIDDEN, "precision": "bfloat16"}
    lstm = nn.LSTM(VOCABULARY, HIDDEN, batch_first=True).to(DEVICE, torch.bfloat16)
    return [
        *both_ways(call, lambda out: relative_error(out[:COMPARED, 0], want), "lookup", known),
        *both_ways(inference(lstm, eye.bfloat16()[codes]), None, "lookup cudnn", known),
    ]


def both_ways(
    call: Callable[[], Tensor],
    error_of: Callable[[Tensor], float] | None,
    what: str,
    known: dict[str, object],
) -> list[Row]:
    """Called and captured; each with the error of what it gives, if that is asked for."""
    rows = []
    for how, one in (("called", call), ("captured", captured(call))):
        known_error = {} if error_of is None else {"error": error_of(one())}
        rows.append(measured(one, what=what, **known, how=how, **known_error))
    return rows


def inference(layer: nn.Module, x: Tensor, **how: str) -> Callable[[], Tensor]:
    """The outputs of a layer, without gradients."""

    @torch.no_grad()
    def call() -> Tensor:
        out: Tensor = layer(x, **how)[0]
        return out

    return call


def latency() -> list[Row]:
    """One sequence of random tokens to its last state."""
    length, dtype = 16_384, torch.bfloat16
    x = torch.randn(1, length, FEATURES, device=DEVICE, dtype=dtype)
    layer, lstm = layer_of(HIDDEN, dtype), nn.LSTM(FEATURES, HIDDEN, batch_first=True)
    lstm = lstm.to(DEVICE, dtype)
    exact = copy.deepcopy(layer).double()
    want = inference(exact, x.double(), output="last")()
    known = {"batch": 1, "length": length, "hidden_size": HIDDEN, "precision": "bfloat16"}

    def error(out: Tensor) -> float:
        return relative_error(out, want)

    fast = inference(compiled(layer), x, output="last")
    return [
        *both_ways(inference(layer, x, output="last"), error, "latency", known),
        measured(fast, what="latency", **known, how="compiled", error=error(fast())),
        *both_ways(inference(lstm, x), None, "latency cudnn", known),
    ]


def compiled(layer: PRLSTM) -> nn.Module:
    """The layer as a user has it captured."""
    fast: nn.Module = torch.compile(layer, fullgraph=True, mode="reduce-overhead")
    return fast


def step(layer: nn.Module, x: Tensor, given: Tensor | None = None) -> Callable[[], Tensor]:
    """Forward and backward over all outputs, whose gradients are ones or `given`.

    Tokens need no gradient.
    """

    def call() -> Tensor:
        layer.zero_grad(set_to_none=True)
        out: Tensor = layer(x)[0]
        out.backward(torch.ones_like(out) if given is None else given)
        return out.detach()

    return call


def training(batch: int, length: int) -> list[Row]:
    """Forward and backward, all prefixes, beside cuDNN's LSTM in float32 and bfloat16."""
    dtype = torch.bfloat16
    x = torch.randn(batch, length, FEATURES, device=DEVICE, dtype=dtype)
    known = {"batch": batch, "length": length, "hidden_size": HIDDEN}
    rows = []
    for checkpoint in (False, True):
        layer = layer_of(HIDDEN, dtype, checkpoint=checkpoint)
        name = "training checkpoint" if checkpoint else "training"
        marks = known | {"precision": "bfloat16", "error": _error(layer, x)}
        rows.append(measured(step(layer, x), what=name, **marks, how="called"))
        if not checkpoint and batch < FEW_ROWS:
            rows.append(_captured_step(layer, x, what=name, **marks))
            marks |= {"error": _error(layer, x, compiled(layer))}
            rows.append(measured(step(compiled(layer), x), what=name, **marks, how="compiled"))
        torch.cuda.empty_cache()
    for kind in (torch.float32, torch.bfloat16):
        lstm = nn.LSTM(FEATURES, HIDDEN, batch_first=True, device=DEVICE, dtype=kind)
        marks = known | {"precision": str(kind).removeprefix("torch.")}
        what, tokens = "training cudnn", x.to(kind)
        rows.append(measured(step(lstm, tokens), what=what, **marks, how="called"))
        if batch < FEW_ROWS:
            rows.append(_captured_step(lstm, tokens, what=what, **marks))
    return rows


def _captured_step(layer: nn.Module, x: Tensor, **known: object) -> Row:
    """A row of a captured step; `difference` is how far its gradients are from those of a call."""
    step(layer, x)()
    called = [p.grad.double() for p in layer.parameters() if p.grad is not None]
    replay = captured(step(layer, x))
    made = [p.grad for p in layer.parameters() if p.grad is not None]
    for gradient in made:
        gradient.fill_(torch.nan)
    replay()
    pairs = zip(made, called, strict=True)
    differences = [relative_error(one, other) for one, other in pairs]
    return measured(replay, **known, how="captured", difference=max(differences))


def _error(layer: PRLSTM, x: Tensor, run: nn.Module | None = None) -> float:
    """The greatest relative error of outputs and gradients of all weights, as `run` has them.

    All of `x` is computed, but a few rows alone have a loss: so float64 needs no others.
    """
    exact, some = copy.deepcopy(layer).double(), x[:COMPARED]
    given = torch.zeros(*x.shape[:2], layer.hidden_size, device=x.device, dtype=x.dtype)
    given[:COMPARED].normal_()
    got = step(run or layer, x, given)()[:COMPARED].clone()
    want = step(exact, some.double(), given[:COMPARED].double())()
    pairs = zip(layer.parameters(), exact.parameters(), strict=True)
    errors = [relative_error(p.grad, q.grad) for p, q in pairs if p.grad is not None]
    layer.zero_grad(set_to_none=True)
    return max(relative_error(got, want), *errors)


PARTS: dict[str, Callable[[], list[Row]]] = {
    "block": block,
    "lookup": lookup,
    "latency": latency,
    "long": lambda: training(16, 8192),
    "wide": lambda: training(1024, 2048),
}


def main(
    parts: Annotated[list[str] | None, typer.Argument(help=", ".join(PARTS))] = None,
    out: Path = RESULTS,
) -> None:
    """Measure the kernels."""
    for part in parts or PARTS:
        if part not in PARTS:
            raise typer.BadParameter(f"{part!r}: expected some of {', '.join(PARTS)}")
    if not torch.cuda.is_available():
        raise typer.BadParameter("the kernels need a CUDA device")
    for part in parts or PARTS:
        torch.manual_seed(torch.seed())
        rows = [environment(DEVICE) | row for row in PARTS[part]()]
        append_rows(out, rows)
        for row in rows:
            names = ("what", "how", "batch", "length", "hidden_size", "precision", "ms", "tflops")
            shown = [f"{name}={row[name]}" for name in names if name in row]
            peak = f"{row['peak_bytes'] / 1e9:.2f} GB"
            error = f"error={row['error']:.1e}" if "error" in row else ""
            print(*shown, peak, error, flush=True)


if __name__ == "__main__":
    typer.run(main)
