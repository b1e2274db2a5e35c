"""Blocks that are looked up by kernels: outputs, gradients and streams are those of all tokens."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from prlstm import PRLSTM
from prlstm.cells import LSTMCell
from prlstm.dispatch import Backend, Reader, weights_of
from prlstm.kernels import launch
from prlstm.kernels import tables as kernel_tables
from prlstm.kernels.choose import Products
from prlstm.kernels.layout import lay_out
from prlstm.kernels.operator import GATES, sweep_forward
from prlstm.kernels.places import Entries, Shape, States
from prlstm.kernels.stages import Stages
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
    def every(words: Words, tokens: int, rows: int, *, most: int, **_: int) -> list[Table]:
        return [Table(k, words.letters, words.fills(k, tokens)) for k in range(most + 1)]

    monkeypatch.setattr(kernel_tables, "tables_for", every)
    monkeypatch.setattr(kernel_tables, "EXTRA", 0)
    kernel_tables._laid_out.cache_clear()
    yield
    kernel_tables._laid_out.cache_clear()


@pytest.fixture
def merged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sums of gates are looked up wherever they can be; tells how many merges each time."""
    monkeypatch.setattr(kernel_tables, "MERGES_OF_AN_ENTRY", 0)
    monkeypatch.setattr(kernel_tables, "LEAST_MERGES", 0)
    plain, found = launch.merge_entries, []

    def merge_entries(*arguments: Any) -> None:
        found.append(arguments[-1].rows)
        plain(*arguments)

    monkeypatch.setattr(launch, "merge_entries", merge_entries)
    return found


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
        (7, 0, 6, 2), (6, 3, 0, 1), (5, 6, 5, 2),
        long(8, 1, 8, 3), long(9, 4, 3, 3), long(2, 0, 0, 2), long(16, 0, 15, 4),
        long(3, 13, 2, 4), long(13, 1, 13, 1), long(12, 0, 0, 0), long(8, 8, 8, 3),
        (5, 22, 4, 1), long(0, 17, 0, 1), long(9, 30, 12, 2), long(8, 24, 31, 1),
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


@pytest.mark.parametrize("start", [4, long(26)])
@pytest.mark.parametrize("is_clear", [False, long(True)])
def test_blocks_without_a_letter_are_merged_once(
    is_clear: bool, start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prlstm.kernels.operator.CLEARED", 1 << 26 if is_clear else 0)
    layer, ids, words = make(5), words_of(2, 5, 22), Words(LETTERS, 5)
    tables = kernel_tables.lay_out_tables(words, 27, 0, 2, 1, 1)
    assert tables.top == 1
    # of blocks of 4, 8 and 16 tokens two, one and one have letters
    assert tables.shared == (2, 1, 1)[: len(tables.shared)]
    assert len(tables.shared) == 2, "no block of 16 is without a letter"
    layout = lay_out(27, start, 0, tables.top, tables.shared)
    assert [step.length for step in layout.steps if step.is_up] == [2, 1, 1]
    got, (want, exact) = looked_up(layer, ids, words, start, 1), plain(layer, ids, start)
    # prefixes alone are read: nobody gives gradients of blocks
    mine = torch.autograd.grad(got.read[0].square().sum(), list(layer.layers[0].parameters()))
    other = torch.autograd.grad(want.read[0].square().sum(), list(exact.parameters()))
    names = [name for name, _ in layer.layers[0].named_parameters()]
    for name, a, b in zip(names, mine, other, strict=False):
        assert_rel(f"d{name}", a, b, FLOAT[1])


@pytest.mark.parametrize(("first", "rest"), [((5, 3), 19), long((0, 8), 16), long((8, 0), 24)])
def test_a_stream_that_goes_on_without_letters(first: tuple[int, int], rest: int) -> None:
    layer, ids = make(5), words_of(2, first[0], first[1] + rest)
    cell = layer.layers[0]
    assert isinstance(cell, LSTMCell)
    whole = Words(LETTERS, first[0])
    here, behind = (whole.part(p) for p in (range(sum(first)), range(sum(first), ids.shape[1])))
    known = weights_of(cell), EXACT
    begun = sweep_lstm_ids(ids[:, : sum(first)], here, *known, Carry(), 0)
    got = sweep_lstm_ids(ids[:, sum(first) :], behind, *known, begun.carry(), 0, most=1)
    want, exact = plain(layer, ids, sum(first))
    assert_rel("read", got.read[0], want.read[0], FLOAT[0])
    mine = torch.autograd.grad(loss_of(got), list(cell.parameters()))
    other = torch.autograd.grad(loss_of(want), list(exact.parameters()))
    for a, b in zip(mine, other, strict=False):
        assert_rel("gradient", a, b, FLOAT[1])


def test_few_blocks_without_a_letter_are_not_worth_a_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def shared(rows: int, seeds: int = 1) -> tuple[int, ...]:
        return kernel_tables.lay_out_tables(Words(LETTERS, 5), 27, 0, rows, seeds, 1).shared

    monkeypatch.setattr(kernel_tables, "EXTRA", 512)
    kernel_tables._laid_out.cache_clear()
    assert shared(256) == (2,)
    assert shared(128, seeds=10) == (2, 1)
    assert shared(128) == ()
    known = kernel_tables.lay_out_tables(Words(LETTERS, 5), 1 << 12, 0, 1024, 1, 1)
    assert known.tables[-1].size > 64, "their numbers would be too large for integers"
    assert kernel_tables.pair_codes(known, len(known.tables) - 1, torch.device("cpu")).sum() == 0
    no_tables = kernel_tables.lay_out_tables(Words(LETTERS, 5), 27, 0, 1024, 1, 0)
    assert no_tables.shared == (), "every node is asked for"


@pytest.mark.parametrize(
    ("hidden", "refine", "bias", "seeds", "blocks"),
    [(1, 1, True, 1, 5), (17, 0, False, 2, 6), (17, 2, True, 2, 3), (137, 0, True, 1, 9)],
)
def test_entries_are_merged_by_their_sums(
    hidden: int, refine: int, bias: bool, seeds: int, blocks: int
) -> None:
    layers = [make(hidden, refine=refine, bias=bias).layers[0] for _ in range(seeds)]
    known = [weights_of(cell) for cell in layers]
    stages = Stages(
        [torch.stack(same) for same in zip(*(cell.weights for cell in known), strict=True)],
        [torch.stack(same) for same in zip(*(cell.biases for cell in known), strict=True)],
        *EXACT,
    )
    place, entries, shape = 2, 4, Shape(seeds, 5, blocks // 2)
    like = torch.empty(0, device=DEVICE)
    h, c = (launch.empty(like, (seeds, 7, stages.size)) for _ in range(2))
    for t in (h, c):
        t[:, place : place + entries] = 0
        t[:, place : place + entries, :hidden] = torch.randn(seeds, entries, hidden)
    codes = torch.randint(entries, (seeds, shape.batch, blocks), device=DEVICE).int()
    # one more state than there are merges, as where the last block has no partner
    out = [launch.empty(h, (seeds, shape.batch, shape.length + 1, stages.size)) for _ in range(2)]
    to_merge = Entries(stages.sums(h[:, place : place + entries]), c, place)
    places = [States.of(t[:, :, :-1]) for t in out]
    between = stages.between(h, shape.rows, gates=False)
    stages.merge_entries(to_merge, codes, (places[0], places[1]), between, shape)
    for seed, cell in enumerate(layers):
        states = [t[seed, place + codes[seed].long(), :hidden].double() for t in (h, c)]
        left, right = ([t[:, j : 2 * shape.length : 2] for t in states] for j in range(2))
        assert isinstance(cell, LSTMCell)
        for t, want in zip(out, cell.double().merge(tuple(left), tuple(right)), strict=True):
            assert_rel("merged", t[seed, :, :-1, :hidden], want, FLOAT[0])
            assert not t[seed, :, :-1, hidden:].any()
            assert t[seed, :, -1].isnan().all()


@pytest.mark.parametrize(
    ("length", "tail", "start", "most", "refine"),
    [
        (7, 0, 6, 1, 1), (6, 5, 10, 2, 0), (5, 0, 0, 0, 2),
        long(13, 3, 2, 3, 1), long(16, 0, 15, 0, 0),
    ],
)  # fmt: skip
def test_without_gradients_sums_are_looked_up(
    length: int,
    tail: int,
    start: int,
    most: int,
    refine: int,
    merged: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layer, ids = make(5, refine=refine), words_of(3, length, tail)
    want, _ = plain(layer, ids, start)

    def check() -> None:
        with torch.no_grad():
            got = looked_up(layer, ids, Words(LETTERS, length), start, most)
        assert_rel("read", got.read[0], want.read[0], FLOAT[0])
        assert_rel("what waits", loss_of(got), loss_of(want), 10 * FLOAT[0])

    check()
    # the tables above the first, and the first level above them
    assert len(merged) == most + 1
    assert merged[-1] == 3 * ((length + tail) >> most + 1)
    looked_up(layer, ids, Words(LETTERS, length), start, most)
    assert len(merged) == most + 1, "a backward pass needs the gates"
    monkeypatch.setattr(kernel_tables, "LEAST_MERGES", 1 << 62)
    check()
    assert len(merged) == most + 1, "too few to be worth it"


def test_few_merges_compute_their_own_sums() -> None:
    assert kernel_tables.are_sums_worth_it(3, 1 << 20, 1)
    assert not kernel_tables.are_sums_worth_it(3, 9, 1)
    assert not kernel_tables.are_sums_worth_it(1 << 16, 1 << 17, 1)
    assert not kernel_tables.are_sums_worth_it(1 << 20, 1 << 30, 1)


def test_words_of_their_own_lengths() -> None:
    layer, ids = make(5), words_of(3, 6, 2)
    ids[1, 2:] = LETTERS
    got, (want, _) = looked_up(layer, ids, Words(LETTERS, None), 2, 2), plain(layer, ids, 2)
    assert_rel("read", got.read[0], want.read[0], FLOAT[0])


@pytest.mark.slow
def test_a_stream_whose_sums_are_looked_up(merged: list[int]) -> None:
    layer, pieces = make(5), (4, 3, 5)
    ids = torch.randint(3, (2, sum(pieces)), device=DEVICE)
    want = layer(torch.eye(3, device=DEVICE)[ids], output="last")
    found, state = [], None
    with torch.no_grad():
        for piece in ids.split(pieces, 1):
            out, state = layer(piece, state, output="last")
            found.append(len(merged))
    assert_rel("out", out, want[0], FLOAT[0])
    # where a leaf waited for a partner, all are merged themselves
    assert found[0] > 0
    assert found[2] == found[1]


@pytest.mark.parametrize(
    "pieces", [(4, 3), long((4, 4, 3)), long((8, 1, 7)), long((2, 8, 8)), long((3, 5, 8))]
)
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


@pytest.mark.slow
def test_many_seeds_are_each_alone() -> None:
    layers = [make(5), make(5)]
    ids = torch.stack([words_of(2, 5, 2) for _ in layers])
    weights, _ = stack_module_state([layer.layers[0] for layer in layers])
    base = copy.deepcopy(layers[0].layers[0])

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = base

        def forward(self, ids: Tensor) -> Tensor:
            reader = Reader(self.cell, 3, Backend("triton"))
            return reader.sweep_ids(ids, Words(LETTERS, 5), Carry(), 4).read[0]

    network = Network()
    named = {f"cell.{name}": t for name, t in weights.items()}
    out = vmap(lambda w, ids: functional_call(network, w, (ids,)))(named, ids)
    grads = torch.autograd.grad(out.square().sum(), list(named.values()))
    for seed, layer in enumerate(layers):
        alone = looked_up(layer, ids[seed], Words(LETTERS, 5), 4, 2).read[0]
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
    arguments = (x, ids, weights, biases, [], [LETTERS, 8, 2, 999], [0, 0], *EXACT, GATES)
    utilities = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(sweep_forward, arguments, test_utils=utilities)
