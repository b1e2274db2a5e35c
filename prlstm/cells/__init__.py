"""What a node of the tree computes."""

from prlstm.cells.cell import CELLS, Cell, CellFactory, build_cell
from prlstm.cells.gated import GatedBlock, gated_block
from prlstm.cells.gru import GRUCell
from prlstm.cells.lstm import LSTMCell
from prlstm.cells.relu import ReLUCell

__all__ = [
    "CELLS",
    "Cell",
    "CellFactory",
    "GRUCell",
    "GatedBlock",
    "LSTMCell",
    "ReLUCell",
    "build_cell",
    "gated_block",
]
