"""In which order the nodes of a balanced tree are computed. Knows nothing of LSTMs."""

from prlstm.tree.carry import Carry
from prlstm.tree.naive import tree_scan_naive
from prlstm.tree.node import MergeFunction, Node
from prlstm.tree.pieces import cut
from prlstm.tree.plan import Plan, bracketing
from prlstm.tree.rows import tree_reduce_rows
from prlstm.tree.scan import Sweep, sweep, tree_extend, tree_reduce, tree_scan
from prlstm.tree.spelling import Words
from prlstm.tree.tables import sweep_ids, tree_reduce_ids

__all__ = [
    "Carry",
    "MergeFunction",
    "Node",
    "Plan",
    "Sweep",
    "Words",
    "bracketing",
    "cut",
    "sweep",
    "sweep_ids",
    "tree_extend",
    "tree_reduce",
    "tree_reduce_ids",
    "tree_reduce_rows",
    "tree_scan",
    "tree_scan_naive",
]
