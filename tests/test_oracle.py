"""The layer against an independent NumPy oracle written from the paper's equations."""

import numpy as np
import pytest
import torch

from prlstm import PRLSTM
from tests.compare import TOLERANCE, assert_rel
from tests.oracle import states


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 9, 33, 41])
@pytest.mark.parametrize(("refine", "hidden_size"), [(0, 4), (1, 1), (1, 17), (2, 5)])
def test_every_prefix_state(refine: int, hidden_size: int, length: int, dtype: torch.dtype) -> None:
    layer = PRLSTM(3, hidden_size, refine=refine, batch_first=True, dtype=dtype)
    with torch.no_grad():
        # biases start at zero: draw them, or a lost one would go unseen
        for parameter in layer.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.5)
    x = torch.randn(2, length, 3, dtype=dtype)
    (sweep,) = layer.trace(x)
    weights = {
        key.removeprefix("layers.0."): value.double().numpy()
        for key, value in layer.state_dict().items()
    }
    for row in range(2):
        want = states(weights, x[row].double().numpy())
        for index, name in enumerate(("h", "c")):
            expected = torch.from_numpy(np.stack([state[index] for state in want]))
            assert_rel(name, sweep.read[index][row], expected, TOLERANCE[dtype][0])
