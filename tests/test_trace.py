"""`layer.trace`: the states of every node of every tree."""

import torch

from prlstm import PRLSTM
from prlstm.tree import naive
from tests.compare import assert_same


def test_every_block_and_every_prefix() -> None:
    layer = PRLSTM(3, 5, batch_first=True, dtype=torch.float64)
    x = torch.randn(2, 13, 3, dtype=torch.float64)
    (sweep,) = layer.trace(x)
    cell = layer.layers[0]
    leaves = [cell.leaf(x[:, t]) for t in range(13)]
    assert [len(level.blocks) for level in sweep.plan.levels[:-1]] == [13, 6, 3, 1]
    for k, blocks in enumerate(sweep.blocks):
        size = 1 << k
        for j in range(13 // size):
            want = naive.block(cell.merge, leaves[j * size : (j + 1) * size])
            for got, expected in zip(blocks, want, strict=True):
                assert_same(f"block {k} {j}", got[:, j], expected)
    for k, prefixes in enumerate(sweep.prefixes):
        for n, j in enumerate(sweep.plan.levels[k].prefixes):
            want = naive.prefix_state(cell.merge, leaves[: j << k])
            for got, expected in zip(prefixes, want, strict=True):
                assert_same(f"prefix {k} {j}", got[:, n], expected)


def test_one_for_each_layer_and_direction() -> None:
    layer = PRLSTM(3, 5, num_layers=2, bidirectional=True)
    x = torch.randn(7, 2, 3)
    sweeps = layer.trace(x)
    assert len(sweeps) == 4
    out, (h_n, _) = layer(x)
    for one, final in zip(sweeps, h_n, strict=True):
        assert_same("final", one.read[0][:, -1], final)
    # the reverse direction reads from the end
    assert_same("reverse", sweeps[3].read[0].flip(1), out.transpose(0, 1)[..., 5:])
    assert repr(sweeps[0]) == (
        "Sweep(Plan(length=7, start=0, count=0), blocks at each level: 7, 3, 1, prefixes: 7)"
    )
    assert layer.trace(x[:, 0])[0].read[0].shape == (1, 7, 5)
