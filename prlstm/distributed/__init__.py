"""More than one device: one sequence over several of them, and sweeps on a cluster."""

from prlstm.distributed.sequence import SplitSequence, partition, sum_gradients

__all__ = ["SplitSequence", "partition", "sum_gradients"]
