"""The tree by kernels on a CUDA device, in every arithmetic that it knows."""

import copy

import pytest
import torch
from torch.func import functional_call, stack_module_state, vmap

from prlstm import PRLSTM
from prlstm.kernels import launch, tables
from prlstm.kernels.choose import Products, choose
from prlstm.kernels.tree import HIGHEST
from prlstm.tree import Carry, Words
from prlstm.tree.tables import MOST_SUMMED
from tests.compare import TOLERANCE, assert_rel, relative_error
from tests.kernels.test_gpu import HALF, PRECISION
from tests.kernels.tree_case import (
    assert_values,
    check,
    exact_values,
    gradients,
    kernel_values,
    make,
    tokens,
)

pytestmark = pytest.mark.gpu
BF16 = torch.bfloat16


@pytest.fixture(autouse=True)
def _needs_a_gpu() -> None:
    assert torch.cuda.is_available(), "these tests need a CUDA device"


@pytest.mark.parametrize("dtype", [torch.float32, *HALF])
@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 9, 40, 41])
@pytest.mark.parametrize("hidden", [1, 17, 137, 256])
def test_is_the_definition(hidden: int, length: int, dtype: torch.dtype) -> None:
    forward, backward = TOLERANCE[dtype]
    # a gradient of four numbers has few errors to average
    tolerance = (forward, backward if hidden > 1 else 4 * backward)
    check(make(hidden, dtype=dtype), tokens(3, length, dtype=dtype), tolerance=tolerance)


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("read", [(40, 41), (13, 30), (31, 32)])
@pytest.mark.parametrize("dtype", HALF)
def test_only_what_is_read(dtype: torch.dtype, read: tuple[int, int], checkpoint: bool) -> None:
    check(make(64, dtype=dtype, checkpoint=checkpoint), tokens(3, 41, dtype=dtype), read)


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("refine", [0, 1, 2])
def test_stages(refine: int, bias: bool, checkpoint: bool) -> None:
    layer = make(64, refine=refine, bias=bias, checkpoint=checkpoint, dtype=BF16)
    check(layer, tokens(5, 20, dtype=BF16))


@pytest.mark.parametrize("precision", ["ieee", "tf32"])
def test_precision_of_float32_products(precision: str) -> None:
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = precision
    try:
        layer = make(137)
        assert choose("triton", layer.layers[0].leaf.weight) == Products(torch.float32, precision)
        check(layer, tokens(3, 41), tolerance=PRECISION[precision])
    finally:
        torch.backends.cuda.matmul.fp32_precision = before


@pytest.mark.parametrize("checkpoint", [False, True])
def test_no_products_but_those_that_were_asked_for(checkpoint: bool) -> None:
    """Forward and backward: the errors of all gradients tell which digits were multiplied."""
    layer, x = make(137, checkpoint=checkpoint), tokens(16, 41)
    want = exact_values(layer, x, (0, 41))

    def errors() -> tuple[float, float]:
        """The middle one of outputs, and of gradients."""
        got = kernel_values(layer, x, (0, 41))
        each = {name: relative_error(got[name], t) for name, t in want.items() if t.any()}
        found = [
            sorted(error for name, error in each.items() if (name[0] == "d") is is_gradient)
            for is_gradient in (False, True)
        ]
        forward, backward = (some[len(some) // 2] for some in found)
        return forward, backward

    matmul = torch.backends.cuda.matmul
    before, found = matmul.fp32_precision, {}
    try:
        for precision in ("ieee", "tf32"):
            matmul.fp32_precision = precision
            found[precision] = errors()
    finally:
        matmul.fp32_precision = before
    with torch.autocast("cuda", dtype=BF16):
        found["bfloat16"] = errors()
    for exact, tf32, half in zip(*found.values(), strict=True):
        assert exact < 3e-6
        assert 50 * exact < tf32 < half / 2


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("length", [500, 512, 2047])
def test_long_and_wide(length: int, checkpoint: bool) -> None:
    # whole levels in rows of one stride, and levels that end with a block alone
    layer = make(256, dtype=BF16, checkpoint=checkpoint)
    x = tokens(9, length, dtype=BF16)
    exact = copy.deepcopy(layer).double()
    exact.backend = "eager"
    wide = x.detach().double().requires_grad_()
    h, (_, c) = exact(wide)
    want = gradients(exact, wide, h, c[0])
    assert_values(kernel_values(layer, x, (0, length)), want, TOLERANCE[BF16])


@pytest.mark.parametrize("cuts", [[1] * 9, [40, 1, 100, 23], [64, 64], [3, 500]])
@pytest.mark.parametrize("checkpoint", [False, True])
def test_any_cuts_are_the_whole(cuts: list[int], checkpoint: bool) -> None:
    layer, x = make(33, checkpoint=checkpoint, dtype=BF16), tokens(2, sum(cuts), dtype=BF16)
    whole = kernel_values(layer, x, (0, sum(cuts)))
    leaf = x.detach().requires_grad_()
    outs, state = [], None
    for piece in leaf.split(cuts, 1):
        out, state = layer(piece, state)
        outs.append(out)
    assert state is not None
    got = gradients(layer, leaf, torch.cat(outs, 1), state[1][0])
    assert_rel("h", got["h"], whole["h"], TOLERANCE[torch.float32][0])
    assert_values(got, whole, TOLERANCE[BF16])


def test_chosen_by_itself() -> None:
    layer = PRLSTM(3, 64, batch_first=True, device="cuda")
    weight = layer.layers[0].leaf.weight
    assert choose(None, weight) is None
    with torch.autocast("cuda", dtype=BF16):
        assert choose(None, weight) == Products(BF16, "ieee")
        assert choose("eager", weight) is None
    assert choose(None, weight.bfloat16()) == Products(BF16, "ieee")
    assert choose(None, weight.double()) is None
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    assert choose(None, weight) == Products(torch.float32, "tf32")
    torch.backends.cuda.matmul.fp32_precision = before


@pytest.mark.parametrize("half", HALF)
def test_autocast_makes_half_precision_products_of_float32(half: torch.dtype) -> None:
    layer, x = make(64, backend=None), tokens(4, 41)
    with torch.autocast("cuda", dtype=half):
        check(layer, x, tolerance=TOLERANCE[half])
        assert layer(x)[0].dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float32, *HALF])
def test_two_runs_give_equal_bits(dtype: torch.dtype) -> None:
    layer, x = make(137, dtype=dtype), tokens(64, 100, dtype=dtype)
    first, second = (kernel_values(layer, x, (0, 100)) for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_seeds_in_one_program() -> None:
    layers = [make(64, dtype=BF16) for _ in range(3)]
    x = tokens(3, 5, 41, dtype=BF16)
    stacked, _ = stack_module_state(layers)  # type: ignore[arg-type]
    out = vmap(lambda p, x: functional_call(layers[0], p, (x,))[0])(stacked, x)
    out.float().square().sum().backward()
    for s, layer in enumerate(layers):
        alone = layer(x[s])[0]
        # compiled for one seed, sums are contracted otherwise than for many
        assert_rel("out", out[s], alone, TOLERANCE[BF16][0] / 10)
        alone.float().square().sum().backward()
        for key, p in layer.named_parameters():
            assert p.grad is not None
            assert_rel(key, stacked[key].grad[s], p.grad, TOLERANCE[BF16][0])


def test_a_new_length_compiles_nothing() -> None:
    layer = make(64, dtype=BF16)
    block = launch.kernels(layer.layers[0].leaf.weight)
    product = launch.gradients(layer.layers[0].leaf.weight)
    kernels = [block.gated_forward, product.gated_backward]
    kernels += [product.input_gradient, product.weight_gradient]

    def compiled() -> list[int]:
        return [sum(len(cache[0]) for cache in k.device_caches.values()) for k in kernels]

    def train(batch: int, length: int) -> None:
        layer(tokens(batch, length, dtype=BF16))[0].sum().backward()
        layer(tokens(batch, length, dtype=BF16), output="last")[0].sum().backward()

    # every way to read and write states once: few rows, many, of one stride and not
    for length in (*range(1, 35), 63, 64, 100, 999, 1000, 1024):
        for batch in (1, 3, 64):
            train(batch, length)
    before = compiled()
    for batch, length in ((2, 17), (5, 40), (7, 300), (128, 33), (1, 777), (16, 256), (90, 500)):
        train(batch, length)
    assert compiled() == before


def test_checkpoint_takes_less_memory() -> None:
    taken = []
    x = tokens(64, 1024, dtype=BF16)
    for checkpoint in (False, True):
        layer = make(256, dtype=BF16, checkpoint=checkpoint)
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        out = layer(x)[0]
        taken.append(torch.cuda.memory_allocated() - before)
        del out
    # h and c of fewer than 3T nodes: 6 bytes for each feature; gates are 18 for each merge
    assert taken[1] < 3 * 64 * 1024 * 256 * 6 * 1.05
    assert taken[0] > 2.5 * taken[1]


@pytest.mark.parametrize(("batch", "length"), [(64, 1024), (4, 16384)])
def test_going_back_with_checkpoint_takes_less_memory(batch: int, length: int) -> None:
    """At its highest, with all that the forward pass kept: two thirds at most."""
    taken = []
    x = tokens(batch, length, dtype=BF16)
    for checkpoint in (False, True):
        layer = make(256, dtype=BF16, checkpoint=checkpoint)
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        out = layer(x)[0]
        given = torch.ones_like(out)
        torch.cuda.reset_peak_memory_stats()
        out.backward(given)
        taken.append(torch.cuda.max_memory_allocated() - before)
        del out, given, layer
    assert taken[1] < taken[0] * 2 / 3


# how many merges are worth sums that are looked up: all of them, or none
ALWAYS, NEVER = 0, 1 << 62


@pytest.mark.parametrize("length", [1, 2, 41, 64, 2048])
@pytest.mark.parametrize("output", ["all", "last"])
def test_ids(length: int, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are looked up where that is worth it: forward, backward, and without gradients."""
    layer, rows = make(137, dtype=BF16), 256 if length < 100 else 16
    ids = torch.randint(3, (rows, length), device="cuda")
    exact = copy.deepcopy(layer).double()
    exact.backend = "eager"
    found = []
    # of any sign: what is summed must not cancel, for then rounding is all that is left
    weight = torch.randn(rows, *([length] if output == "all" else []), 137, device="cuda").to(BF16)
    for one in (layer, exact):
        one.zero_grad()
        given = ids if one is layer else torch.eye(3, dtype=torch.float64, device="cuda")[ids]
        out = one(given, output=output)[0]
        (out * weight).sum().backward()
        found.append({"h": out} | {f"d{name}": p.grad for name, p in one.named_parameters()})
    monkeypatch.setattr(tables, "MERGES_OF_AN_ENTRY", 0)
    for least in (tables.LEAST_MERGES, ALWAYS, NEVER):
        monkeypatch.setattr(tables, "LEAST_MERGES", least)
        with torch.no_grad():
            found[0][f"h alone, {least}"] = layer(ids, output=output)[0]
        found[1][f"h alone, {least}"] = found[1]["h"]
    for name, want in found[1].items():
        if want is not None and want.any():
            assert_rel(name, found[0][name], want, TOLERANCE[BF16][name[0] == "d"])


@pytest.mark.parametrize("dtype", [torch.float32, *HALF])
@pytest.mark.parametrize("hidden", [1, 17, 137, 256])
@pytest.mark.parametrize("least", [ALWAYS, NEVER])
def test_ids_in_a_graph(
    least: int, hidden: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MERGES_OF_AN_ENTRY", 0)
    monkeypatch.setattr(tables, "LEAST_MERGES", least)
    layer, ids = make(hidden, dtype=dtype), torch.randint(3, (33, 75), device="cuda")
    with torch.no_grad():
        for _ in range(2):
            layer(ids, output="last")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out, (_, c) = layer(ids, output="last")
        ids.copy_(torch.randint(3, ids.shape, device="cuda"))
        graph.replay()
    x = torch.eye(3, dtype=dtype, device="cuda")[ids]
    want = exact_values(layer, x, (74, 75))
    assert_rel("h", out[:, None], want["h"], TOLERANCE[dtype][0])
    assert_rel("c", c[0], want["c"], TOLERANCE[dtype][0])


def test_gradients_of_ids_have_equal_bits() -> None:
    layer = make(64, dtype=BF16)
    ids = torch.randint(3, (128, 500), device="cuda")
    found = []
    for _ in range(2):
        layer.zero_grad()
        layer(ids)[0].float().square().sum().backward()
        found.append([p.grad.clone() for p in layer.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("start", [40, 121])
@pytest.mark.parametrize("dtype", HALF)
def test_blocks_without_a_letter(dtype: torch.dtype, start: int) -> None:
    """Words with so much room for answers that above the tables empty blocks are merged once."""
    rows, length, tokens = 1024, 40, 122
    words = Words(2, length)
    assert tables.lay_out_tables(words, tokens, 0, rows, 1, HIGHEST, MOST_SUMMED).shared
    ids = torch.randint(2, (rows, tokens), device="cuda")
    ids[:, length:] = 2
    layer = make(137, dtype=dtype)
    exact = copy.deepcopy(layer).double()
    exact.backend = "eager"
    want = exact(torch.eye(3, dtype=torch.float64, device="cuda")[ids])[0][:, start:]
    weight = torch.randn_like(want)
    (want * weight).sum().backward()
    reader, bits = layer.readers()[0], []
    for _ in range(2):
        layer.zero_grad()
        got = reader.sweep_ids(ids, words, Carry(), start).read[0]
        (got * weight.to(dtype)).sum().backward()
        bits.append([got, *(p.grad.clone() for p in layer.parameters() if p.grad is not None)])
    assert all(torch.equal(a, b) for a, b in zip(*bits, strict=True))
    assert_rel("h", got, want, TOLERANCE[dtype][0])
    for (name, mine), other in zip(layer.named_parameters(), exact.parameters(), strict=True):
        if other.grad is not None and other.grad.any():
            assert_rel(f"d{name}", mine.grad, other.grad, TOLERANCE[dtype][1])
    with torch.no_grad():
        alone = reader.sweep_ids(ids, words, Carry(), start).read[0]
    assert_rel("h alone", alone, want, TOLERANCE[dtype][0])


@pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores:UserWarning")
@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_compiled_call_is_captured(checkpoint: bool) -> None:
    """As users have short work captured: kernels stand in CUDA graphs, forward and backward."""
    layer, x = make(64, dtype=BF16, checkpoint=checkpoint), tokens(2, 41, dtype=BF16)
    fast = torch.compile(layer, fullgraph=True, mode="reduce-overhead")
    for _ in range(4):
        layer.zero_grad()
        want = layer(x)[0]
        want.float().square().sum().backward()
        gradients = {name: p.grad.clone() for name, p in layer.named_parameters()}
        layer.zero_grad()
        out = fast(x)[0]
        assert_rel("out", out, want, TOLERANCE[BF16][0] / 10)
        out.float().square().sum().backward()
        for name, p in layer.named_parameters():
            assert_rel(name, p.grad, gradients[name], TOLERANCE[BF16][0])
    torch.compiler.reset()


def test_compiled_is_eager() -> None:
    layer, x = make(64, dtype=BF16), tokens(4, 13, dtype=BF16)
    fast = torch.compile(layer, fullgraph=True)
    for mine, other in zip(fast(x)[0], layer(x)[0], strict=True):
        assert_rel("compiled", mine, other, TOLERANCE[torch.float32][0])
    exact = exact_values(layer, x, (0, 13))
    fast(x)[0].float().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())
    assert_rel("h", fast(x)[0], exact["h"], TOLERANCE[BF16][0])


def test_captured_is_eager() -> None:
    layer, x = make(64, dtype=BF16), tokens(4, 41, dtype=BF16)
    with torch.no_grad():
        for _ in range(2):
            layer(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out, _ = layer(x)
        fresh = tokens(4, 41, dtype=BF16)
        x.copy_(fresh)
        graph.replay()
        assert torch.equal(out, layer(fresh)[0])
