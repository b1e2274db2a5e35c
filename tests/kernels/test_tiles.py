"""In which order programs take the tiles of a product: each of them once, neighbours together."""

import pytest
import torch

from prlstm.kernels import launch, tiles
from prlstm.kernels.places import Rows, Shape, States
from prlstm.kernels.tiles import FEATURES, TILES, Tile
from prlstm.kernels.weights import Block, tile_weights
from tests.compare import TOLERANCE, assert_rel
from tests.kernels.case import DEVICE, Case
from tests.kernels.test_tree import long

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

tile_of = launch.imported("block").tile_of


@triton.jit
def tell(p_found, rows, height: tl.constexpr, columns: tl.constexpr, group: tl.constexpr) -> None:
    """Which tile of rows, and of columns, each program takes."""
    i_m, i_n = tile_of(rows, height, columns, group)
    tl.store(p_found + 2 * tl.program_id(0), i_m)
    tl.store(p_found + 2 * tl.program_id(0) + 1, i_n)


@pytest.mark.parametrize("group", [1, 3, 8])
@pytest.mark.parametrize("columns", [1, 2, 5])
@pytest.mark.parametrize("rows", [1, 16, 17, 128, 150, 300])
def test_every_tile_is_one_programs(rows: int, columns: int, group: int) -> None:
    height = 16
    of_rows = -(-rows // height)
    found = torch.full((of_rows * columns, 2), -1, dtype=torch.int32, device=DEVICE)
    tell[(of_rows * columns,)](found, rows, height, columns, group)
    order = [(m, n) for m, n in found.tolist()]
    assert sorted(order) == [(m, n) for m in range(of_rows) for n in range(columns)]
    # a tile of columns is read again while no more than a group of tiles of rows comes between
    assert order == sorted(order, key=lambda tile: (tile[0] // group, tile[1], tile[0]))


@pytest.fixture
def _smallest_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    for kernel in ("leaf", "refine", "compose", "refine few", "compose few"):
        monkeypatch.setitem(TILES, (kernel, "ieee"), Tile(16, FEATURES, 16))
    monkeypatch.setitem(TILES, ("input few", "ieee"), Tile(16, 16, 16))
    monkeypatch.setattr(launch, "block_tile", tiles.block_tile.__wrapped__)


@pytest.mark.usefixtures("_smallest_tiles")
@pytest.mark.parametrize("states", [long(0), long(1), 2])
def test_more_tiles_of_rows_than_a_group(states: int) -> None:
    Case(states, 33, (129,)).check()


@pytest.mark.usefixtures("_smallest_tiles")
def test_gradients_of_more_tiles_of_rows_than_a_group() -> None:
    block, shape = Block(1, 32, 32), Shape(1, 1, 150)
    weight = torch.randn(1, 128, 32, device=DEVICE)
    tiled = tile_weights(weight, None, block, block, FEATURES, torch.float32)
    dgates = torch.randn(1, 150, tiled.columns, device=DEVICE)
    dh = launch.empty(dgates, (1, 1, 150, 32))
    launch.input_gradient(Rows(dgates, 0), tiled, [States.of(dh)], shape, precision="ieee")
    want = dgates.double() @ tiled.weight.double()
    assert_rel("dh", dh[0], want, TOLERANCE[torch.float32][1])
