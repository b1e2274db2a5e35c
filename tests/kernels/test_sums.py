"""Sums over many rows, in parts: nothing is left out, and every run adds in the same order."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from prlstm.kernels import chunks, launch, weights
from prlstm.kernels.chunks import Chunks, Segment, weight_gradient
from prlstm.kernels.places import Shape, States
from prlstm.kernels.weights import Block, tile_weights, untile_gradients
from tests.compare import TOLERANCE, assert_rel
from tests.kernels.case import DEVICE, Case
from tests.kernels.tree_case import assert_values, exact_values, kernel_values, make, tokens

pytest.importorskip("triton")
FLOAT = TOLERANCE[torch.float32]


def equal_bits(make: Callable[[], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """What is made, twice the same."""
    first, second = make(), make()
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    return first


def check_sums_of_entries(
    shape: Shape, size: int, entries: int, dtype: torch.dtype, *, one: bool, add: bool
) -> None:
    """Sums of what came for the rows of each entry, at a place among other states."""
    place, codes_of = 3, 1 if one else shape.seeds
    codes = torch.randint(entries, (codes_of, shape.rows), device=DEVICE, dtype=torch.int32)
    # integers, of which every arithmetic makes exact sums
    given = [torch.randint(-8, 9, (*shape, size), device=DEVICE).float() for _ in range(2)]
    given[0] = given[0].to(dtype)
    before = [torch.randn(shape.seeds, entries + 5, size, device=DEVICE) for _ in range(2)]
    before[0] = before[0].to(dtype)

    def found() -> tuple[Tensor, ...]:
        memory = before[0].clone(), before[1].clone()
        dh, dc = map(States.of, given)
        launch.sum_entries(codes, dh, dc, memory, place, entries, shape, add=add)
        return memory

    for got, old, came in zip(equal_bits(found), before, given, strict=True):
        want = old.double()
        here = want[:, place : place + entries]
        if not add:
            here.zero_()
        here.scatter_add_(
            1,
            codes.long().expand(shape.seeds, -1)[..., None].expand(-1, -1, size),
            came.flatten(1, 2).double(),
        )
        assert_rel("sums", got, want, TOLERANCE[got.dtype][0])
        beside = [*range(place), place + entries, place + entries + 1]
        assert torch.equal(got[:, beside], old[:, beside]), "what stands beside the table"


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(
    ("rows", "least", "most"),
    # of the splits the last are shorter, or empty
    [(11, 4, 64), (11, 2, 64), (11, 1, 3), (70, 10, 2), (3, 4, 64)],
)
def test_splits_of_entries_need_not_be_even(
    rows: int, least: int, most: int, add: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "ROWS_OF_A_SPLIT", least)
    monkeypatch.setattr(launch, "MOST_SPLITS", most)
    for one in (False, True):
        check_sums_of_entries(Shape(2, 1, rows), 16, 4, torch.float32, one=one, add=add)


@pytest.mark.gpu
@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_splits_of_entries_on_a_gpu(dtype: torch.dtype, add: bool) -> None:
    assert torch.cuda.is_available(), "this test needs a CUDA device"
    shape = Shape(3, 256, 41)
    splits = shape.rows // launch.ROWS_OF_A_SPLIT
    assert 1 < splits <= launch.MOST_SPLITS
    assert shape.rows % splits, "the splits are even"
    for entries in (5, 1024):
        check_sums_of_entries(shape, 144, entries, dtype, one=False, add=add)


def natural(
    dweight: Tensor, dbias: Tensor, block: Block, padded: Block, features: int
) -> tuple[Tensor, Tensor]:
    """The sums of parts in tiles, in float64, as weight and bias have their places."""
    seeds, tiles = dweight.shape[0], padded.columns(features) // (block.gates * features)
    total = dweight.double().sum(1).view(seeds, tiles, block.gates, features, block.inputs, -1)
    total = total.transpose(1, 2).flatten(2, 3)[:, :, : block.hidden_size, :, : block.input_size]
    bias = dbias.double().sum(1).view(seeds, tiles, block.gates, features).transpose(1, 2)
    return (
        total.flatten(1, 2).flatten(2),
        bias.flatten(2)[:, :, : block.hidden_size].flatten(1),
    )


@pytest.mark.parametrize(
    ("block", "padded", "splits", "parts"),
    [
        (Block(2, 17, 17), Block(2, 32, 32), 3, 7),
        (Block(1, 5, 5), Block(1, 16, 16), 2, 4),
        (Block(0, 3, 5), Block(0, 16, 16), 1, 1),
    ],
)
def test_all_parts_of_a_gradient_are_summed(
    block: Block, padded: Block, splits: int, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # several at a time, and a rest
    monkeypatch.setattr(weights, "SUMMED_PARTS", 4)
    seeds, features = 2, 16
    columns, wide = padded.columns(features), block.inputs * padded.input_size
    dweight = torch.randn(seeds, splits, columns, wide, device=DEVICE)
    dbias = torch.randn(seeds, parts, columns, device=DEVICE)
    rows, width = block.gates * block.hidden_size, block.inputs * block.input_size
    weight = torch.zeros(seeds, rows, width, device=DEVICE)
    bias = torch.zeros(seeds, rows, device=DEVICE)

    def found() -> tuple[Tensor, ...]:
        made, of_bias = untile_gradients(dweight, dbias, weight, bias, block, padded, features)
        assert of_bias is not None
        return made, of_bias

    want = natural(dweight, dbias, block, padded, features)
    for mine, other in zip(equal_bits(found), want, strict=True):
        assert_rel("gradient", mine, other, FLOAT[0])


def cut_in_many(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows are cut into splits of few rows; tells how many splits each time."""
    monkeypatch.setattr(chunks, "LEAST_ROWS", 3)
    monkeypatch.setattr(chunks, "SPLITS", 5)
    plain: Callable[..., Chunks] = chunks._cut
    found: list[int] = []

    def cut(*given: Any) -> Chunks:
        made = plain(*given)
        found.append(made.splits)
        return made

    monkeypatch.setattr(chunks, "_cut", cut)
    # what is kept was cut by other numbers, and what is cut here is for nobody else
    for name in ("merge_chunks", "plain_chunks"):
        make = getattr(chunks, name).__wrapped__
        monkeypatch.setattr(f"prlstm.kernels.backward.{name}", make)
    return found


def test_the_gradient_of_a_weight_in_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rows of several levels, where a split ends within a level and goes on in the next."""
    cut_in_many(monkeypatch)
    block, seeds, rows = Block(2, 16, 16), 2, 17
    segments = [
        Segment(0, 8, 4, False, (8, 2, 0, 0), (8, 2, 1, 1)),
        # the first left state stands elsewhere
        Segment(8, 6, 3, True, (9, 2, 3, 1), (6, 2, 17, 17)),
        Segment(14, 3, 3, False, (0, 2, 30, 30), (0, 2, 31, 31)),
    ]
    made = chunks._cut(segments, 2, torch.device(DEVICE))
    assert made.splits == 5
    assert made.fields.shape[0] > 5, "no split goes on in the next level"
    blocks, prefixes = (torch.randn(seeds, n, 16, device=DEVICE) for n in (40, 20))
    weight = torch.randn(seeds, 80, 32, device=DEVICE)
    tiled = tile_weights(weight, None, block, block, 16, torch.float32)
    # behind the rows stands what products read and must not count
    dgates = torch.randn(seeds, rows + 16, tiled.columns, device=DEVICE)

    def found() -> tuple[Tensor, ...]:
        return (weight_gradient(dgates, blocks, prefixes, made, tiled, precision="ieee"),)

    rows_read = []
    for segment in segments:
        for row in range(segment.rows):
            pair = []
            for in_prefixes, where in ((segment.in_prefixes, segment.left), (False, segment.right)):
                batch, step, base, first = where
                i, j = divmod(row, segment.length)
                place = i * batch + (base + j * step if j else first)
                pair.append((prefixes if in_prefixes else blocks)[:, place])
            rows_read.append(torch.cat(pair, -1))
    read = torch.stack(rows_read, 1).double()
    want = dgates[:, :rows].double().mT @ read
    (parts,) = equal_bits(found)
    assert parts.shape == (seeds, 5, tiled.columns, 32)
    assert_rel("gradient", parts.double().sum(1), want, FLOAT[0])
    # each row is in one split, and the splits are of about one size
    taken = [int(n) for n in made.fields[:, 1]]
    sizes = [sum(taken[a:b]) for a, b in zip(made.bounds[:-1], made.bounds[1:], strict=True)]
    assert sum(sizes) == rows
    assert max(sizes) == 4


@pytest.mark.parametrize("checkpoint", [False, True])
def test_gradients_of_a_tree_in_splits(checkpoint: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    splits = cut_in_many(monkeypatch)
    layer, x = make(1, checkpoint=checkpoint), tokens(6, 4)
    first, second = (kernel_values(layer, x, (0, 4)) for _ in range(2))
    assert max(splits) > 3
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert_values(first, exact_values(layer, x, (0, 4)), FLOAT)


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> int:
    """Gradients of gates as where there are many rows; so many belong to one program."""
    monkeypatch.setattr(launch, "BACKWARD_ROWS", 4)
    monkeypatch.setattr(launch, "ROUNDS", 3)
    monkeypatch.setattr(launch, "ROWS_FOR_ROUNDS", 7)
    return 12


@pytest.mark.parametrize("rows", [7, 25])
@pytest.mark.parametrize("states", [0, 1, 2])
def test_programs_of_several_tiles(states: int, rows: int, rounds: int) -> None:
    assert launch.parts(rows) == -(-rows // rounds)
    assert launch.parts(6) == 2, "of few rows each tile has its program"
    Case(states, 3, (rows,)).check()


@pytest.mark.parametrize("checkpoint", [False, True])
def test_levels_of_programs_of_several_tiles(
    checkpoint: bool, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "SUMMED_PARTS", 2)
    layer, x = make(1, checkpoint=checkpoint), tokens(5, 4)
    # of the leaves and of the first level alone, and no multiples
    assert launch.parts(5 * 4) == 2
    assert launch.parts(5 * 2) == 1
    values = kernel_values(layer, x, (0, 4))
    assert_values(values, exact_values(layer, x, (0, 4)), FLOAT)
