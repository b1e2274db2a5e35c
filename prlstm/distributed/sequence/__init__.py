"""One sequence over several devices, on `torch.distributed`: each rank reads a part of it."""

from prlstm.distributed.sequence.gradients import sum_gradients
from prlstm.distributed.sequence.layer import SplitSequence
from prlstm.distributed.sequence.parts import partition

__all__ = ["SplitSequence", "partition", "sum_gradients"]
