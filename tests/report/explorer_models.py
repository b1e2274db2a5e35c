"""Models for the explorer: small, as they were drawn, with weights large enough to matter."""

from pathlib import Path

import torch

from prlstm import models, tasks


def untrained(root: Path, task: str, hidden_size: int, name: str | None = None) -> Path:
    """A folder with a model; its states and answers depend on every token."""
    options = {"hidden_size": hidden_size, "refine": 1}
    model = models.build("pr_lstm", tasks.get(task), seed=0, **options)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2).add_(0.1 * torch.sin(torch.arange(weight.numel()).view_as(weight)))
    folder = root / (name or task)
    models.save(model, folder)
    return folder
