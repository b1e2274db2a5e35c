"""The models that come with the package: how they were trained, and how they get there."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prlstm import models
from prlstm.experiments.crew import Choice
from prlstm.experiments.runs import Store, Wanted
from prlstm.report.columns import Column
from prlstm.training import Request, RunConfig, RunFolder

# often enough to keep good weights; what is shipped are the last ones
VALIDATE_EVERY = 1000
SAMPLES = 512


@dataclass(frozen=True)
class Recipe:
    """A small PR-LSTM for a task, trained in minutes on a CPU.

    Words grow by a token every `grow_every` steps, from 1 to 40; the learning rate falls to zero.
    """

    task: str
    hidden_size: int
    steps: int
    grow_every: int
    rate: float = 1e-3
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def setting(self) -> dict[str, Any]:
        """What it says of a run."""
        return {
            "hidden_size": self.hidden_size,
            "schedule.kind": "cosine",
            "schedule.rate": self.rate,
            "schedule.decay_steps": self.steps,
            "curriculum.kind": "increasing",
            "curriculum.every": self.grow_every,
            **self.more,
        }

    @property
    def request(self) -> Request:
        """How far it goes."""
        return Request(steps=self.steps, validate_every=VALIDATE_EVERY, samples=SAMPLES)


# the tasks that a PR-LSTM solves in the paper, in its order
RECIPES = (
    Recipe("even_pairs", hidden_size=48, steps=10_000, grow_every=100),
    Recipe("modular_arithmetic", hidden_size=80, steps=100_000, grow_every=500, rate=2e-3),
    Recipe("parity_check", hidden_size=48, steps=10_000, grow_every=100),
    Recipe("cycle_navigation", hidden_size=64, steps=40_000, grow_every=200, rate=2e-3),
    Recipe("missing_duplicate_string", hidden_size=64, steps=20_000, grow_every=200),
    Recipe("bucket_sort", hidden_size=48, steps=20_000, grow_every=50, more={"batch_size": 64}),
)


def wanted(recipe: Recipe) -> Wanted:
    """The cell of one model: one seed, exact arithmetic."""
    title = f"PR-LSTM of {recipe.hidden_size} features"
    # of what a recipe says, rows tell what is not as usual
    own = RunConfig.from_own(recipe.task, "pr_lstm", recipe.setting).own()
    return Wanted(
        recipe.task, Column(f"shipped_{recipe.task}", title, "pr_lstm", own), (0,), "float32"
    )


def in_turn(recipes: Sequence[Recipe], store: Store) -> Choice:
    """One model after the other, each as far as its recipe says."""
    cells = [wanted(recipe) for recipe in recipes]

    def choose(busy: Collection[int]) -> tuple[int, Request] | None:
        for number, (cell, recipe) in enumerate(zip(cells, recipes, strict=True)):
            if number not in busy and store.missing(cell, recipe.request):
                return number, recipe.request
        return None

    return choose


def put(recipe: Recipe, store: Store, folder: Path) -> Path | None:
    """Put the weights of a trained run into a folder named as the task.

    None if the run is not there: a row may answer without it.
    """
    (config,) = wanted(recipe).configs
    run = RunFolder(store.runs / config.name, config)
    if (run.step() or 0) < recipe.steps:
        return None
    model = models.load(run.path)
    models.save(model, folder / recipe.task)
    return folder / recipe.task
