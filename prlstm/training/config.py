"""One training run: everything that changes its numbers."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

from prlstm import models, tasks
from prlstm.models import Model
from prlstm.training.check import read_number
from prlstm.training.curriculum import Curriculum
from prlstm.training.precision import PRECISIONS
from prlstm.training.schedule import Schedule

# settings that are settings of a part
PARTS: dict[str, type[Any]] = {"curriculum": Curriculum, "schedule": Schedule}


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """A task, a model, a seed, and how it is trained. Equal configurations give equal runs.

    `average` is the share that an average of the weights keeps at every step; at 0 there is none.
    The number of steps and the device are not part of it: a longer run goes on from a shorter one.
    """

    task: str
    model: str = "pr_lstm"
    hyper_parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    batch_size: int = 128
    clip: float = 1.0
    precision: str = "float32"
    average: float = 0.0
    curriculum: Curriculum = field(default_factory=Curriculum)
    schedule: Schedule = field(default_factory=Schedule)

    def __post_init__(self) -> None:
        tasks.get(self.task)
        options = models.kind(self.model).options.read(self.model, dict(self.hyper_parameters))
        # all of them, so that a default that is written out is the same run
        object.__setattr__(self, "hyper_parameters", MappingProxyType(asdict(options)))
        for name, least in (("seed", 0), ("batch_size", 1)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise ValueError(f"{name}={value!r}: expected an integer >= {least}")
        clip, average = (read_number(name, getattr(self, name)) for name in ("clip", "average"))
        if not 0 < clip < math.inf:
            raise ValueError(f"clip={self.clip}: expected a finite number > 0")
        if self.precision not in PRECISIONS:
            raise ValueError(
                f"precision={self.precision!r}: expected one of {', '.join(PRECISIONS)}"
            )
        if not 0 <= average < 1:
            raise ValueError(f"average={self.average}: expected a number with 0 <= average < 1")
        object.__setattr__(self, "clip", clip)
        object.__setattr__(self, "average", average)

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
        return RunConfig(**{k: PARTS[k](**v) if k in PARTS else v for k, v in given.items()})

    @staticmethod
    def from_own(task: str, model: str, own: Mapping[str, Any], seed: int = 0) -> "RunConfig":
        """The configuration of which `own` gives these settings.

        >>> config = RunConfig.from_own("parity_check", "lstm", {"schedule.rate": 0.01})
        >>> config.schedule.rate, config.own()
        (0.01, {'schedule.rate': 0.01})
        """
        given = RunConfig(task=task, model=model, seed=seed).as_json()
        for name, value in own.items():
            part, _, inner = name.partition(".")
            if part in PARTS:
                given[part][inner] = value
            elif name in given:
                given[name] = value
            else:
                given["hyper_parameters"][name] = value
        return RunConfig.from_json(given)

    def own(self) -> dict[str, Any]:
        """The settings that are not as usual, seeds aside: by name, those of parts with a dot."""
        usual = RunConfig(task=self.task, model=self.model).with_seed(self.seed).settings()
        return {name: value for name, value in self.settings().items() if value != usual[name]}

    def settings(self) -> dict[str, Any]:
        """All settings by name, those of parts under the name of the part and a dot."""
        flat: dict[str, Any] = {}
        for name, value in self.as_json().items():
            if name == "hyper_parameters":
                flat |= value
            elif isinstance(value, dict):
                flat |= {f"{name}.{part}": inner for part, inner in value.items()}
            else:
                flat[name] = value
        return flat

    @property
    def name(self) -> str:
        """Task, model, a hash of all settings, and the seed: the name of the run's folder.

        What is as usual is left out, so that a setting of tomorrow renames no run of today.
        """
        content = json.dumps(self.own(), sort_keys=True).encode()
        digest = hashlib.blake2b(content, digest_size=4)
        return f"{self.task}-{self.model}-{digest.hexdigest()}-s{self.seed}"


def differences(configs: list[RunConfig]) -> list[dict[str, Any]]:
    """For each configuration what tells it from the others, seeds aside: name and value.

    Task and model where they differ, and settings that are not as usual and not all have.
    """
    own = [config.own() for config in configs]
    told = []
    for config, one in zip(configs, own, strict=True):
        named = {"task": config.task, "model": config.model}
        kept = {n: v for n, v in named.items() if any(getattr(c, n) != v for c in configs)}
        more = {n: v for n, v in one.items() if any(other.get(n) != v for other in own)}
        told.append(kept | {SHORT.get(name, name): value for name, value in more.items()})
    return told


# names of parts as a user knows them
SHORT = {
    "schedule.kind": "schedule",
    "schedule.rate": "learning_rate",
    "schedule.warm_up": "warm_up",
    "schedule.decay_steps": "decay_steps",
    "curriculum.kind": "curriculum",
    "curriculum.longest": "longest",
    "curriculum.every": "grow_every",
    "curriculum.tau": "tau",
}
