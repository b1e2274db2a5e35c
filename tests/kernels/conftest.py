"""Memory that kernels are given."""

import pytest
import torch

from prlstm.kernels import launch


@pytest.fixture(autouse=True)
def _poisoned_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a kernel forgets to write is NaN."""
    plain = launch.empty

    def empty(*arguments: object, **named: object) -> torch.Tensor:
        memory: torch.Tensor = plain(*arguments, **named)  # type: ignore[arg-type]
        # a number of a block that is none
        return memory.fill_(float("nan") if memory.is_floating_point() else 1 << 30)

    monkeypatch.setattr(launch, "empty", empty)
