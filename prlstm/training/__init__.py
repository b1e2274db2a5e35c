"""Training: configurations, lengths, and many seeds at once."""

from prlstm.training.config import RunConfig
from prlstm.training.curriculum import Curriculum
from prlstm.training.events import Event, Report
from prlstm.training.loop import train
from prlstm.training.runs import Request, RunFolder
from prlstm.training.schedule import Schedule
from prlstm.training.scoring import score
from prlstm.training.trainer import Metrics, Trainer

__all__ = [
    "Curriculum",
    "Event",
    "Metrics",
    "Report",
    "Request",
    "RunConfig",
    "RunFolder",
    "Schedule",
    "Trainer",
    "score",
    "train",
]
