"""Settings that belong together, by name."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Preset:
    """What a preset sets; what a user says himself comes first."""

    about: str
    seeds: int = 1
    steps: int = 100_000
    samples: int = 512
    validate_every: int = 1000
    batch_size: int = 128
    rate: float = 1e-3
    # only for models that have them
    hyper_parameters: dict[str, Any] = field(default_factory=dict)


PRESETS = {
    "default": Preset(about="one seed, 100,000 steps; all else as in the paper"),
    "quick": Preset(
        about="a minute on a CPU: small, few steps, scored on 64 words of each length",
        steps=1000,
        samples=64,
        validate_every=200,
        batch_size=64,
        rate=3e-3,
        hyper_parameters={"hidden_size": 64},
    ),
    "paper": Preset(about="10 seeds, 1,000,000 steps", seeds=10, steps=1_000_000),
}
