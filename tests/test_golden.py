"""Equality with the reference implementation's stored outputs and gradients."""

from pathlib import Path

import pytest
import torch

from tests.compare import STORED, assert_rel
from tests.golden import FILES, Golden


def test_the_golden_files_are_there() -> None:
    assert len(FILES) >= 6


@pytest.mark.parametrize("path", [path for _, path in FILES], ids=[name for name, _ in FILES])
class TestGolden:
    def test_outputs(self, path: Path) -> None:
        golden = Golden(path)
        layer = golden.layer()
        for length in golden.lengths:
            (sweep,) = layer.trace(golden[f"xs_{length}"])
            assert_rel(f"h_{length}", sweep.read[0], golden[f"h_{length}"], STORED[0])
            if golden.cell == "lstm":
                assert_rel(f"c_{length}", sweep.read[1], golden[f"c_{length}"], STORED[0])
            logits = torch.relu(sweep.read[0]) @ golden["readout_w"] + golden["readout_b"]
            assert_rel(f"logits_{length}", logits, golden[f"logits_{length}"], STORED[0])

    @pytest.mark.parametrize("length", [13, 40])
    def test_gradients(self, path: Path, length: int) -> None:
        golden = Golden(path)
        layer = golden.layer()
        x = golden[f"xs_{length}"].requires_grad_()
        out, _ = layer(x)
        (out * golden[f"gradR_{length}"]).sum().backward()
        assert x.grad is not None
        assert_rel("xs", x.grad, golden[f"grad_{length}_xs"], STORED[1])
        parameters = dict(layer.named_parameters())
        assert set(parameters) == set(golden.names())
        for mine, theirs in golden.names().items():
            gradient = parameters[mine].grad
            assert gradient is not None, mine
            assert_rel(mine, gradient, golden.ours(f"grad_{length}_{theirs}"), STORED[1])
