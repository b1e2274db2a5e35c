"""Blocks that are looked up by kernels: outputs, gradients and streams are those of all tokens."""

import copy
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from prlstm import PRLSTM
from prlstm.cells import LSTMCell
from prlstm.dispatch import Backend, Reader, weights_of
from prlstm.kernels import tables as kernel_tables
from prlstm.kernels.choose import Products
from prlstm.kernels.operator import GATES, sweep_forward
from prlstm.kernels.tree import sweep_lstm_ids
from prlstm.tree import Carry, Sweep, Words, sweep
from prlstm.tree.spelling import Table
from tests.compare import TOLERANCE, assert_rel
from tests.kernels.case import DEVICE
from tests.kernels.test_tree import long
from tests.kernels.tree_case import make

pytest.importorskip("triton")
FLOAT = TOLERANCE[torch.float32]
EXACT = Products(torch.float32, "ieee")
LETTERS = 2


@pytest.fixture(autouse=True)
def _tables_are_always_worth_it(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def every(words: Words, tokens: int, rows: int, *, most: int, extra: int) -> list[Table]:
        return [Table(k, words.letters, words.fills(k, tokens)) for k in range(most + 1)]

    monkeypatch.setattr(kernel_tables, "tables_for", every)
    kernel_tables.lay_out_tables.cache_clear()
    yield
    kernel_tables.lay_out_tables.cache_clear()


def words_of(rows: int, length: int, tail: int) -> Tensor:
    ids = torch.randint(LETTERS, (rows, length + tail), device=DEVICE)
    ids[:, length:] = LETTERS
    return ids


def looked_up(layer: PRLSTM, ids: Tensor, words: Words, start: int, most: int) -> Sweep:
    cell = layer.layers[0]
    assert isinstance(cell, LSTMCell)
    return sweep_lstm_ids(
        ids, words, weights_of(cell), EXACT, Carry(), start,
        checkpoint=layer.checkpoint, most=most,
    )  # fmt: skip


def plain(layer: PRLSTM, ids: Tensor, start: int) -> tuple[Sweep, LSTMCell]:
    """The tree of all tokens in float64, and the cell that it is of."""
    cell = copy.deepcopy(layer.layers[0]).double()
    assert isinstance(cell, LSTMCell)
    eye = torch.eye(LETTERS + 1, dtype=torch.float64, device=DEVICE)
    return sweep(cell.merge, cell.leaf(eye[ids]), 1, start=start), cell


def loss_of(done: Sweep) -> Tensor:
    """Of the prefixes that are read, and of all that waits."""
    carry, generator = done.carry(), torch.Generator().manual_seed(1)
    nodes = [done.read, *(node for node in carry.blocks + carry.folds if node is not None)]
    loss = torch.zeros((), dtype=torch.float64, device=DEVICE)
    for node in nodes:
        for t in node:
            loss = loss + (t * torch.randn(t.shape, generator=generator).to(t)).sum()
    return loss


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize(
    ("length", "tail", "start", "most"),
    [
        (7, 0, 6, 2), (6, 3, 0, 1), (8, 1, 8, 3), (5, 6, 5, 2), (9, 4, 3, 3),
        long(2, 0, 0, 2), long(16, 0, 15, 4), long(3, 13, 2, 4), long(13, 1, 13, 1),
        long(12, 0, 0, 0), long(8, 8, 8, 3),
    ],
)  # fmt: skip
def test_outputs_and_gradients(
    length: int, tail: int, start: int, most: int, checkpoint: bool
) -> None:
    layer, ids = make(5, checkpoint=checkpoint), words_of(2, length, tail)
    words = Words(LETTERS, length)
    with torch.no_grad():
        last = looked_up(layer, ids, words, start, most)
    got, (want, exact) = looked_up(layer, ids, words, start, most), plain(layer, ids, start)
    for mine, fewer, other in zip(got.read, last.read, want.read, strict=True):
        assert_rel("read", mine, other, FLOAT[0])
        assert_rel("read without gradients", fewer, other, FLOAT[0])
    assert_rel("what waits", loss_of(last), loss_of(want), 10 * FLOAT[0])
    mine = torch.autograd.grad(loss_of(got), list(layer.layers[0].parameters()))
    other = torch.autograd.grad(loss_of(want), list(exact.parameters()))
    names = [name for name, _ in layer.layers[0].named_parameters()]
    for name, a, b in zip(names, mine, other, strict=False):
        assert_rel(f"d{name}", a, b, FLOAT[1])


def test_words_of_their_own_lengths() -> None:
    layer, ids = make(5), words_of(3, 6, 2)
    ids[1, 2:] = LETTERS
    got, (want, _) = looked_up(layer, ids, Words(LETTERS, None), 2, 2), plain(layer, ids, 2)
    assert_rel("read", got.read[0], want.read[0], FLOAT[0])


@pytest.mark.parametrize("pieces", [(4, 4, 3), long((8, 1, 7)), long((2, 8, 8)), long((3, 5, 8))])
def test_a_stream_of_ids(pieces: tuple[int, ...]) -> None:
    layer = make(5)
    ids = torch.randint(3, (2, sum(pieces)), device=DEVICE)
    want = layer(torch.eye(3, device=DEVICE)[ids], output="last")
    for grad in (False, True):
        with torch.set_grad_enabled(grad):
            state = None
            for piece in ids.split(pieces, 1):
                out, state = layer(piece, state, output="last")
        assert_rel("out", out, want[0], FLOAT[0])
        assert_rel("c", state[1], want[1][1], FLOAT[0])


def test_many_seeds_are_each_alone() -> None:
    layers = [make(5), make(5)]
    ids = torch.stack([words_of(3, 9, 2) for _ in layers])
    weights, _ = stack_module_state([layer.layers[0] for layer in layers])
    base = copy.deepcopy(layers[0].layers[0])

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = base

        def forward(self, ids: Tensor) -> Tensor:
            reader = Reader(self.cell, 3, Backend("triton"))
            return reader.sweep_ids(ids, Words(LETTERS, 9), Carry(), 8).read[0]

    network = Network()
    named = {f"cell.{name}": t for name, t in weights.items()}
    out = vmap(lambda w, ids: functional_call(network, w, (ids,)))(named, ids)
    grads = torch.autograd.grad(out.square().sum(), list(named.values()))
    for seed, layer in enumerate(layers):
        alone = looked_up(layer, ids[seed], Words(LETTERS, 9), 8, 3).read[0]
        assert_rel("out", out[seed], alone, FLOAT[0])
        cell = dict(layer.layers[0].named_parameters())
        mine = torch.autograd.grad(alone.square().sum(), list(cell.values()))
        found = dict(zip(named, grads, strict=True))
        for name, gradient in zip(cell, mine, strict=True):
            assert_rel(name, found[f"cell.{name}"][seed], gradient, FLOAT[1])


def test_gradients_summed_in_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, ids = make(5), words_of(3, 8, 0)
    found = []
    for rows in (1024, 2):
        monkeypatch.setattr("prlstm.kernels.launch.ROWS_OF_A_SPLIT", rows)
        done = looked_up(layer, ids, Words(LETTERS, 8), 0, 2)
        found.append(torch.autograd.grad(loss_of(done), list(layer.layers[0].parameters())))
    for a, b in zip(*found, strict=True):
        assert_rel("gradient", a, b, FLOAT[1])


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
def test_registered_as_pytorch_wants_it() -> None:
    weights, biases = weights_of(make(5).layers[0]).stacked()  # type: ignore[arg-type]
    ids = torch.randint(LETTERS, (1, 2, 8), device=DEVICE)
    x = torch.eye(LETTERS, 3, device=DEVICE)[None, None]
    arguments = (x, ids, weights, biases, [], [LETTERS, 8, 2], [0, 0], *EXACT, GATES)
    utilities = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(sweep_forward, arguments, test_utils=utilities)
