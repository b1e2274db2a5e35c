"""The gated block as one kernel on a GPU; `prlstm.cells.gated` is its definition."""

from prlstm.kernels.check import PRECISIONS
from prlstm.kernels.gated import gated
from prlstm.kernels.tiles import TILES, Tile

__all__ = ["PRECISIONS", "TILES", "Tile", "gated"]
