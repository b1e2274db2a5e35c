"""How much memory the kernels are given at a time."""

import weakref
from collections.abc import Callable

import pytest
from torch import Tensor

from prlstm.kernels import launch
from tests.kernels.tree_case import make, tokens

pytest.importorskip("triton")
BATCH, LENGTH, HIDDEN = 2, 64, 16
# numbers of a state, h and c, and of the gates' sums of each block: leaf, composition, refinement
STATE, LEAF, COMPOSED, REFINED = 2 * HIDDEN, 3 * HIDDEN, 5 * HIDDEN, 4 * HIDDEN


class Held:
    """Numbers in memory that was given and is not free: now, and at most."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def watched(self, make: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """The same, watched until nobody looks at the memory any more."""

        def made(*arguments: object, **named: object) -> Tensor:
            memory = make(*arguments, **named)
            count = memory.numel()
            self.now += count
            self.most = max(self.most, self.now)
            weakref.finalize(memory.untyped_storage(), self._free, count)
            return memory

        return made

    def _free(self, count: int) -> None:
        self.now -= count


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    held = Held()
    monkeypatch.setattr(launch, "empty", held.watched(launch.empty))
    return held


def test_checkpoint_holds_the_gates_of_one_level(held: Held) -> None:
    layer = make(HIDDEN, checkpoint=True)
    out, _ = layer(tokens(BATCH, LENGTH))
    loss = out.sum()
    before = held.most = held.now
    # all nodes: blocks, and after every token a prefix
    assert before >= BATCH * (3 * LENGTH - 1) * STATE
    loss.backward()
    widest = BATCH * LENGTH // 2
    # gates, their gradients, and the states between two stages
    level = widest * (2 * (COMPOSED + REFINED) + STATE)
    leaves = BATCH * LENGTH * (2 * LEAF + STATE)
    # gradients of all blocks, and those between two stages
    always = BATCH * 2 * LENGTH * STATE + widest * STATE
    assert held.most - before <= always + max(level, leaves)
