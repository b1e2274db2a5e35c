"""What is not written would be seen; what a pass back needs is kept, and nothing else."""

from collections import defaultdict
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from prlstm.kernels import launch
from prlstm.kernels.layout import lay_out
from prlstm.kernels.weights import Block, tile_weights, untile_gradients
from tests.kernels.case import DEVICE
from tests.kernels.tree_case import make, tokens

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


# bytes of h and c of a state of up to 16 features in float32, and of the sums of one gate
STATE, GATE = 16 * (4 + 4), 16 * 4


def kept_bytes(x: Tensor, *, checkpoint: bool) -> int:
    """What autograd saves of a layer's forward pass, each piece of memory once."""
    layer = make(5, checkpoint=checkpoint)
    # by where they stand: alive, no two stand at one place
    saved: dict[int, Tensor] = {}

    def save(t: Tensor) -> Tensor:
        saved[t.untyped_storage().data_ptr()] = t
        return t

    with torch.autograd.graph.saved_tensors_hooks(save, lambda t: t):
        out, _ = layer(x)
    assert out.requires_grad
    return sum(t.untyped_storage().nbytes() for t in saved.values())


def test_what_is_kept_for_the_backward_pass() -> None:
    """With `checkpoint` h and c of every node; without, the gates' sums and what is between too."""
    batch, length = 2, 4
    layout, x = lay_out(length), tokens(batch, length)
    # what does not grow with the sequence: weights, as they are and in tiles
    lean, full = (
        kept_bytes(x, checkpoint=checkpoint) - kept_bytes(x[:, :1], checkpoint=checkpoint)
        for checkpoint in (True, False)
    )
    # x is kept, and x[:, :1] is a view of all of it
    assert lean < 3 * batch * length * STATE
    leaves, merges = batch * (length - 1), batch * layout.merges
    assert full - lean >= merges * 9 * GATE
    assert full - lean <= leaves * 3 * GATE + merges * (9 * GATE + STATE)


def test_what_is_kept_of_ids() -> None:
    ids = torch.randint(3, (2, 2), device=DEVICE)
    lean, full = (kept_bytes(ids, checkpoint=checkpoint) for checkpoint in (True, False))
    assert full - lean >= 2 * lay_out(2).merges * 9 * GATE


@pytest.mark.parametrize("length", [64, 63])
def test_a_sweep_drops_blocks_that_nobody_needs(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the end alone is read: two levels, what stands between, and what waits."""
    made: list[tuple[StorageWeakRef, int]] = []
    alive: list[int] = []
    plain = launch.empty

    def empty(*arguments: Any, **named: Any) -> Tensor:
        memory = plain(*arguments, **named)
        made.append((StorageWeakRef(memory.untyped_storage()), memory.nbytes))
        alive.append(sum(size for ref, size in made if not ref.expired()))
        return memory

    monkeypatch.setattr(launch, "empty", empty)
    layer, layout = make(1), lay_out(length, length - 1)
    with torch.no_grad():
        layer(tokens(1, length), output="last")
    assert len(alive) > 2 * len(layout.sizes)
    longest = max(step.length for step in layout.steps)
    first, second = layout.sizes[:2]
    assert max(alive) <= (first + second + longest + layout.slots + 1) * STATE
    # in the end no more than that of the last level, and what stands between
    assert alive[-1] <= (longest + layout.slots + 2 + 2 * len(layout.pending)) * STATE
