"""Settings for all tests."""

import os

import pytest
import torch
from hypothesis import settings

# Without a GPU the kernels run in Triton's interpreter: it must be told before it is imported.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

# The same examples on every run and every machine; a slow machine is not a failure.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("fixed")


@pytest.fixture(autouse=True)
def _known_random_numbers() -> None:
    torch.manual_seed(0)


if "PYTEST_XDIST_WORKER" in os.environ:
    # the workers share the cores, and so do the commands that they start
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
