"""Settings for all tests."""

import os

import pytest
import torch
from hypothesis import settings

# The same examples on every run and every machine; a slow machine is not a failure.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("fixed")


@pytest.fixture(autouse=True)
def _known_random_numbers() -> None:
    torch.manual_seed(0)


if "PYTEST_XDIST_WORKER" in os.environ:
    # the workers share the cores
    torch.set_num_threads(1)
