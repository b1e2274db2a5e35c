"""Training: configurations, lengths, and many seeds at once."""

from prlstm.training.config import RunConfig
from prlstm.training.curriculum import Curriculum
from prlstm.training.loop import Progress, train
from prlstm.training.runs import RunFolder
from prlstm.training.schedule import Schedule
from prlstm.training.trainer import Metrics, Trainer

__all__ = [
    "Curriculum",
    "Metrics",
    "Progress",
    "RunConfig",
    "RunFolder",
    "Schedule",
    "Trainer",
    "train",
]
