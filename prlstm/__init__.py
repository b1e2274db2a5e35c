"""Parallel Recursive LSTM: nonlinear recurrence of logarithmic parallel depth."""

from prlstm import models, tasks
from prlstm.cells import Cell
from prlstm.layer import PRLSTM
from prlstm.models import load
from prlstm.state import State
from prlstm.streams import Streams
from prlstm.tree import tree_reduce, tree_scan

__version__ = "0.1.0"

__all__ = [
    "PRLSTM",
    "Cell",
    "State",
    "Streams",
    "__version__",
    "load",
    "models",
    "tasks",
    "tree_reduce",
    "tree_scan",
]
