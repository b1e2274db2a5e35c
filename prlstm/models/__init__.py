"""Models by name: the PR family and the baselines of the paper, behind one signature."""

from prlstm.models.folder import load, save
from prlstm.models.model import Model
from prlstm.models.registry import MODELS, Kind, build, kind, names
from prlstm.models.shipping import shipped
from prlstm.models.stacked import Stacked

__all__ = [
    "MODELS",
    "Kind",
    "Model",
    "Stacked",
    "build",
    "kind",
    "load",
    "names",
    "save",
    "shipped",
]
