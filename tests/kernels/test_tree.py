"""The tree by kernels: outputs and every gradient are those of the definition in float64."""

from collections.abc import Callable

import pytest
import torch
from _pytest.mark import ParameterSet
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from prlstm import PRLSTM
from prlstm.dispatch import weights_of
from prlstm.kernels import gated, launch, tiles
from prlstm.kernels.choose import Products, choose
from prlstm.kernels.operator import GATES, sweep_forward
from prlstm.kernels.tree import NOT_SPELLED
from tests.compare import TOLERANCE, assert_rel
from tests.kernels.case import DEVICE
from tests.kernels.tree_case import (
    assert_values,
    check,
    gradients,
    kernel_values,
    make,
    tokens,
)

pytest.importorskip("triton")
FLOAT = TOLERANCE[torch.float32]
EXACT = Products(torch.float32, "ieee")


def long(*values: object) -> ParameterSet:
    """One more case of a kind, for the slow suite: interpreted kernels take their time."""
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize("length", [1, 2, 3, long(8), 13])
def test_lengths(length: int) -> None:
    check(make(5), tokens(2, length))


@pytest.mark.parametrize("hidden", [long(1), 33, long(137)])
def test_hidden_sizes(hidden: int) -> None:
    check(make(hidden), tokens(1, 2))


@pytest.mark.parametrize("batch", [long(1), 2])
def test_many_rows(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # by descriptors, as where there are enough of them to fill a device
    monkeypatch.setattr(tiles, "FEW_ROWS", 0)
    monkeypatch.setattr(launch, "MANY_ROWS", 0)
    monkeypatch.setattr(launch, "block_tile", tiles.block_tile.__wrapped__)
    check(make(17), tokens(batch, 7))


@pytest.mark.parametrize(
    ("read", "checkpoint"),
    [((12, 13), False), long((12, 13), True), ((4, 9), True), long((7, 8), False)],
)
def test_only_what_is_read(read: tuple[int, int], checkpoint: bool) -> None:
    check(make(5, checkpoint=checkpoint), tokens(3, 13), read)


@pytest.mark.parametrize(
    ("refine", "bias", "checkpoint"),
    [
        (0, True, False),
        long(0, False, True),
        (1, False, True),
        long(2, True, True),
        long(2, False, False),
    ],
)
def test_stages(refine: int, bias: bool, checkpoint: bool) -> None:
    check(make(5, refine=refine, bias=bias, checkpoint=checkpoint), tokens(2, 5))


@pytest.mark.parametrize(
    ("cuts", "checkpoint"),
    [([1, 2], False), ([1, 1], True), long([2, 2], True), long([2, 1, 1], False)],
)
def test_any_cuts_are_the_whole(cuts: list[int], checkpoint: bool) -> None:
    layer, x = make(2, checkpoint=checkpoint), tokens(2, sum(cuts))
    whole = kernel_values(layer, x, (0, sum(cuts)))
    leaf = x.detach().requires_grad_()
    outs, state = [], None
    for piece in leaf.split(cuts, 1):
        out, state = layer(piece, state)
        outs.append(out)
    assert state is not None
    out, (_, c) = torch.cat(outs, 1), state
    assert_values(gradients(layer, leaf, out, c[0]), whole, FLOAT)
    with torch.no_grad():
        state = None
        for piece, want in zip(x.split(cuts, 1), whole["h"].split(cuts, 1), strict=True):
            out, state = layer(piece, state)
            assert_rel("without gradients", out, want, FLOAT[0])


def assert_as_eager(call: Callable[[PRLSTM], tuple[Tensor, ...]], **options: object) -> None:
    """The same outputs, and gradients of their squares, as plain PyTorch gives."""
    layer = make(5, **options)
    eager = make(5, **options, backend="eager")
    eager.load_state_dict(layer.state_dict())
    results = []
    for one in (layer, eager):
        outputs = call(one)
        loss = sum((t.square().sum() for t in outputs), torch.zeros((), device=DEVICE))
        results.append([*outputs, *torch.autograd.grad(loss, list(one.parameters()))])
    for j, (mine, other) in enumerate(zip(*results, strict=True)):
        assert_rel(f"{j}", mine, other, FLOAT[1])


@pytest.mark.slow
def test_rows_of_mixed_lengths() -> None:
    x = tokens(3, 5)

    def call(layer: PRLSTM) -> tuple[Tensor, ...]:
        out, state = layer(x, lengths=[5, 1, 4])
        more, after = layer(x[:, :2], state)
        return out, more, *after

    assert_as_eager(call)


def test_packed_layers_in_both_directions() -> None:
    packed = pack_sequence([tokens(n) for n in (2, 5, 3)], enforce_sorted=False)

    def call(layer: PRLSTM) -> tuple[Tensor, ...]:
        out, (h, c) = layer(packed)
        assert isinstance(out, PackedSequence)
        return out.data, h, c

    assert_as_eager(call, num_layers=2, bidirectional=True)


def test_a_plain_state_and_every_node() -> None:
    x, h, c = tokens(2, 6), *torch.randn(2, 1, 2, 5, device=DEVICE)

    def call(layer: PRLSTM) -> tuple[Tensor, ...]:
        out, _ = layer(x, (h, c))
        (sweep,) = layer.trace(x)
        return out, *(t for node in (*sweep.blocks, *sweep.prefixes) for t in node)

    assert_as_eager(call)


@pytest.mark.parametrize("shared", [False, long(True)])
def test_vmap_is_a_loop(shared: bool) -> None:
    layers = [make(5) for _ in range(2)]
    x = tokens(2, 3) if shared else tokens(2, 2, 3)
    stacked, _ = stack_module_state(layers)  # type: ignore[arg-type]

    def run(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        out: Tensor = functional_call(layers[0], parameters, (x,))[0]
        return out

    out = vmap(run, in_dims=(0, None if shared else 0))(stacked, x)
    out.square().sum().backward()
    for s, layer in enumerate(layers):
        alone = layer(x if shared else x[s])[0]
        assert torch.equal(out[s], alone)
        alone.square().sum().backward()
        for key, p in layer.named_parameters():
            assert p.grad is not None
            assert_rel(key, stacked[key].grad[s], p.grad, FLOAT[0])


def test_a_seed_that_is_no_number_leaves_the_others_alone() -> None:
    layers = [make(17) for _ in range(2)]
    x = tokens(2, 2, 3)
    alone = torch.autograd.grad(layers[0](x[0])[0].square().sum(), list(layers[0].parameters()))
    with torch.no_grad():
        for p in layers[1].parameters():
            p.fill_(torch.nan)
    stacked, _ = stack_module_state(layers)  # type: ignore[arg-type]
    x.requires_grad_()
    out = vmap(lambda p, x: functional_call(layers[0], p, (x,))[0])(stacked, x)
    out.square().sum().backward()
    for key, want in zip(stacked, alone, strict=True):
        assert_rel(key, stacked[key].grad[0], want, FLOAT[0])
    assert x.grad is not None
    assert x.grad[0].isfinite().all()


def test_no_rows() -> None:
    x = tokens(0, 5).requires_grad_()
    layer = make(5)
    out, state = layer(x)
    assert out.shape == (0, 5, 5)
    out.sum().backward()
    assert all(p.grad is not None and not p.grad.any() for p in layer.parameters())
    with torch.no_grad():
        assert layer(x, state, output="last")[0].shape == (0, 5)


def test_outputs_can_be_viewed() -> None:
    layer, x = make(5), tokens(2, 7)
    for read in ((0, 7), (2, 5)):
        assert layer(x, output=read)[0].is_contiguous()


def test_no_forward_mode_derivatives() -> None:
    x = tokens(1, 2)
    with pytest.raises(ValueError, match=r"backend='triton': expected no forward-mode derivatives"):
        torch.func.jvp(lambda x: make(5)(x)[0], (x,), (x,))
    layer = make(5, backend=None)
    _, tangent = torch.func.jvp(lambda x: layer(x)[0], (x,), (x,))
    assert tangent.any()


def test_two_runs_give_equal_bits() -> None:
    layer, x = make(17), tokens(2, 5)
    first, second = (kernel_values(layer, x, (0, 5)) for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_autocast_makes_half_precision_products_of_float32() -> None:
    layer, x = make(16), tokens(2, 7)
    # the interpreter cannot multiply bfloat16
    with torch.autocast(DEVICE, dtype=torch.float16):
        check(layer, x, tolerance=TOLERANCE[torch.float16])
        half = layer(x)[0]
    assert half.dtype == torch.float32
    assert not torch.equal(half, layer(x)[0])


# the compiler itself looks at the gradient of what is not a leaf
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
def test_registered_as_pytorch_wants_it() -> None:
    cell = weights_of(make(5).layers[0])
    weights, biases = cell.stacked()
    x = tokens(1, 2, 5).requires_grad_()
    arguments = (x, None, weights, biases, [], NOT_SPELLED, [0, 0], *EXACT, GATES)
    # not that outputs agree: the memory of blocks that are not there is never written
    utilities = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(sweep_forward, arguments, test_utils=utilities)


# the compiler itself looks at the gradient of what is not a leaf
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
@pytest.mark.parametrize("output", ["all", long("last")])
def test_compiled_is_eager(output: str) -> None:
    # time first: what the layer reads is not contiguous
    layer, x = make(5, batch_first=False), tokens(6, 2).requires_grad_()
    fast = torch.compile(layer, fullgraph=True, backend="aot_eager")
    results = []
    for call in (layer, fast):
        layer.zero_grad()
        x.grad = None
        out, (_, c) = call(x, output=output)
        (out.square().sum() + c.sum()).backward()
        results.append([out, x.grad, *(p.grad for p in layer.parameters())])
    for mine, other in zip(*results, strict=True):
        assert_rel("compiled", mine, other, FLOAT[0])
    torch.compiler.reset()


def test_backends_by_name() -> None:
    weight = torch.zeros(3, 2)
    assert choose(None, weight) is None
    assert choose("eager", weight) is None
    assert choose("triton", weight) == EXACT
    with torch.autocast("cpu", torch.bfloat16):
        assert choose("triton", weight) == Products(torch.bfloat16, "ieee")
    with pytest.raises(
        TypeError, match=r"weights are torch.float64, expected one of torch.float32"
    ):
        choose("triton", weight.double())
    with pytest.raises(ValueError, match=r"backend='cuda': expected 'eager' or 'triton', or None"):
        PRLSTM(3, 5, backend="cuda")
    with pytest.raises(
        ValueError, match=r"backend='triton': expected cell='lstm', got cell='relu'"
    ):
        PRLSTM(3, 5, cell="relu", backend="triton")
    with pytest.raises(ValueError, match=r"checkpoint=1: expected True or False"):
        PRLSTM(3, 5, checkpoint=1)  # type: ignore[arg-type]
    assert "backend=eager, checkpoint=True" in repr(PRLSTM(3, 5, backend="eager", checkpoint=True))


def test_kernels_need_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch.imported("block"), "INTERPRETED", False)
    # no kernel may be launched before that is known
    monkeypatch.setattr(launch.imported("pack"), "pack_weights", None)
    layer, x = make(5, device="cpu"), torch.zeros(1, 2, 3)
    with pytest.raises(ValueError, match=r"weights are on cpu, expected a CUDA device"):
        layer(x)
    with pytest.raises(ValueError, match=r"weight is on cpu: expected a CUDA device"):
        gated([x], [], torch.zeros(15, 3))


def test_checkpoint_inside_vmap() -> None:
    layer, x = make(5, checkpoint=True, backend="eager"), tokens(2, 2, 3)
    out = vmap(lambda x: layer(x)[0])(x)
    assert_rel("out", out[1], layer(x[1])[0], FLOAT[0])
    out.sum().backward()


def test_checkpoint_of_plain_pytorch() -> None:
    x = tokens(2, 6)
    layer, plain = make(5, checkpoint=True, backend="eager"), make(5, backend="eager")
    plain.load_state_dict(layer.state_dict())
    kept: list[list[tuple[int, ...]]] = []
    grads = []
    for one in (layer, plain):
        shapes: list[tuple[int, ...]] = []

        def keep(t: Tensor, shapes: list[tuple[int, ...]] = shapes) -> Tensor:
            shapes.append(tuple(t.shape))
            return t

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
            out = one(x)[0]
        kept.append(shapes)
        grads.append(torch.autograd.grad(out.square().sum(), list(one.parameters())))
    assert len(kept[0]) < len(kept[1])
    for mine, other in zip(*grads, strict=True):
        assert_rel("gradient", mine, other, FLOAT[0])
