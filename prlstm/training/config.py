"""One training run: everything that changes its numbers."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

from prlstm import models, tasks
from prlstm.models import Model
from prlstm.training.curriculum import Curriculum
from prlstm.training.schedule import Schedule


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """A task, a model, a seed, and how it is trained. Equal configurations give equal runs.

    The number of steps and the device are not part of it: a longer run goes on from a shorter one.
    """

    task: str
    model: str = "pr_lstm"
    hyper_parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    batch_size: int = 128
    clip: float = 1.0
    curriculum: Curriculum = field(default_factory=Curriculum)
    schedule: Schedule = field(default_factory=Schedule)

    def __post_init__(self) -> None:
        tasks.get(self.task)
        options = models.kind(self.model).options.read(self.model, dict(self.hyper_parameters))
        # all of them, so that a default that is written out is the same run
        object.__setattr__(self, "hyper_parameters", MappingProxyType(asdict(options)))
        if self.seed < 0:
            raise ValueError(f"seed={self.seed}: expected an integer >= 0")
        if self.batch_size < 1:
            raise ValueError(f"batch_size={self.batch_size}: expected an integer >= 1")
        if not self.clip > 0:
            raise ValueError(f"clip={self.clip}: expected a number > 0")

    def with_seed(self, seed: int) -> "RunConfig":
        """The same run with another seed."""
        return replace(self, seed=seed)

    def build(self) -> Model:
        """The model with its first weights."""
        return models.build(self.model, self.task, seed=self.seed, **self.hyper_parameters)

    def as_json(self) -> dict[str, Any]:
        """The configuration as JSON can hold it."""
        plain = {**vars(self), "hyper_parameters": dict(self.hyper_parameters)}
        return plain | {"curriculum": asdict(self.curriculum), "schedule": asdict(self.schedule)}

    @staticmethod
    def from_json(given: dict[str, Any]) -> "RunConfig":
        """The configuration that `as_json` wrote."""
        parts = {"curriculum": Curriculum, "schedule": Schedule}
        return RunConfig(**{k: parts[k](**v) if k in parts else v for k, v in given.items()})

    @property
    def name(self) -> str:
        """Task, model, seed, and a hash of everything: the name of the run's folder."""
        content = json.dumps(self.as_json(), sort_keys=True).encode()
        digest = hashlib.blake2b(content, digest_size=5).hexdigest()
        return f"{self.task}-{self.model}-s{self.seed}-{digest}"
