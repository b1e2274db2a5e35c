"""Memory: what is not written would be seen, what is not needed is not kept."""

from collections import defaultdict

import pytest
import torch

from prlstm.kernels import launch
from prlstm.kernels.weights import Block, tile_weights, untile_gradients
from tests.kernels.case import DEVICE

pytest.importorskip("triton")


def test_new_memory_of_kernels_is_poisoned() -> None:
    like = torch.zeros(3, device=DEVICE)
    assert launch.empty(like, (2, 5)).isnan().all()
    assert (launch.empty(like, (2, 5), torch.int32) == 1 << 30).all()


def test_memory_of_weights_is_poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: object, **__: object) -> None:
        pass

    for kernel in ("pack_weights", "unpack_gradients"):
        monkeypatch.setattr(launch.imported("pack"), kernel, defaultdict(lambda: nothing))
    block, padded = Block(1, 5, 5), Block(1, 16, 16)
    weight, bias = torch.zeros(2, 20, 5, device=DEVICE), torch.zeros(2, 20, device=DEVICE)
    made = tile_weights(weight, bias, block, padded, 16, torch.float32)
    parts = torch.zeros(2, 1, 64, 16, device=DEVICE), torch.zeros(2, 1, 64, device=DEVICE)
    gradients = untile_gradients(*parts, weight, bias, block, padded, 16)
    assert all(t is not None and t.isnan().all() for t in (made.weight, made.bias, *gradients))
