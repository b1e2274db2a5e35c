"""The formal-language tasks: words, answers, samplers, tapes and scores."""

from prlstm.tasks.batch import Batch
from prlstm.tasks.floors import Floors, measure_floors
from prlstm.tasks.registry import get, names, register
from prlstm.tasks.scores import Counts, accuracy, count, loss
from prlstm.tasks.tapes import Tape, tape, tape_size
from prlstm.tasks.task import Size, Task
from prlstm.tasks.verify import verify

__all__ = [
    "Batch",
    "Counts",
    "Floors",
    "Size",
    "Tape",
    "Task",
    "accuracy",
    "count",
    "get",
    "loss",
    "measure_floors",
    "names",
    "register",
    "tape",
    "tape_size",
    "verify",
]
