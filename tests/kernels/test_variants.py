"""What kernels are compiled by: a batch of a new length, or of more rows, compiles nothing."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from prlstm import PRLSTM
from prlstm.kernels import launch

pytest.importorskip("triton")
KERNELS = {
    "block": ["gated_forward"],
    "gradients": ["gated_backward", "input_gradient", "weight_gradient"],
    "lookup": ["spell", "look_up", "merge_entries", "sum_entries"],
    "pack": ["pack_weights", "unpack_gradients"],
}


class Recorder:
    """In the place of a kernel: notes for each launch what Triton would compile it by."""

    def __init__(self, name: str, seen: set[tuple[object, ...]]) -> None:
        self.name, self.seen = name, seen

    def __getitem__(self, grid: object) -> Callable[..., None]:
        def launched(*arguments: object, **constants: object) -> None:
            kinds = (self._kind(argument) for argument in arguments)
            self.seen.add((self.name, *kinds, *sorted(constants.items())))

        return launched

    def _kind(self, argument: object) -> object:
        if argument is None:
            return None
        if isinstance(argument, Tensor):
            return argument.dtype, argument.data_ptr() % 16
        if isinstance(argument, tuple):
            # numbers in tuples are specialised whatever the kernel says
            return tuple(1 if n == 1 else n % 16 == 0 for n in argument)
        if isinstance(argument, int):
            return "not specialised"
        return argument.base.dtype, tuple(argument.block_shape)  # type: ignore[attr-defined]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> set[tuple[object, ...]]:
    found: set[tuple[object, ...]] = set()
    for module, names in KERNELS.items():
        for name in names:
            monkeypatch.setattr(launch.imported(module), name, Recorder(name, found))
    return found


def test_a_new_length_compiles_nothing(seen: set[tuple[object, ...]]) -> None:
    hidden, kind = 17, torch.bfloat16
    layer = PRLSTM(3, hidden, batch_first=True, backend="triton", dtype=kind)

    def train(batch: int, length: int) -> None:
        x, ids = torch.zeros(batch, length, 3, dtype=kind), torch.zeros(batch, length).long()
        for output in ("all", "last"):
            layer(x, output=output)[0].sum().backward()
            layer(ids, output=output)[0].sum().backward()
        with torch.no_grad():
            layer(ids, output="last")
            _, state = layer(x)
            layer(x[:, :3], state)

    # few rows and many, of one stride and not
    for length in (*range(1, 10), 15, 16, 17, 18, 31, 32, 33, 64, 100):
        for batch in (1, 3, 64):
            train(batch, length)
    for batch, length in ((1, 2000), (64, 999), (64, 1000), (64, 1024), (33, 998)):
        train(batch, length)
    assert seen
    before = len(seen)
    for batch, length in ((2, 17), (5, 40), (7, 300), (128, 33), (1, 777), (90, 500), (17, 1999)):
        train(batch, length)
    assert len(seen) == before
