"""What is no gated block is refused by name."""

from typing import Any

import pytest
import torch

from prlstm.kernels import gated

H, K, ROWS = 4, 4, 3
GOOD: dict[str, Any] = {
    "h": [torch.zeros(ROWS, K)] * 2,
    "c": [torch.zeros(ROWS, H)] * 2,
    "weight": torch.zeros(5 * H, 2 * K),
    "bias": torch.zeros(5 * H),
    "precision": "ieee",
}
WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"h": GOOD["h"][:1]}, ValueError, r"h and c hold 1 and 2 tensors: expected 1 and 0"),
    ({"h": [], "c": []}, ValueError, r"h and c hold 0 and 0 tensors: expected 1 and 0"),
    ({"precision": "fast"}, ValueError, r"precision='fast': expected one of ieee, tf32"),
    ({"weight": torch.zeros(21, 8)}, ValueError, r"weight of shape \(21, 8\): expected \(5 H, 2 K"),
    ({"weight": torch.zeros(20, 7)}, ValueError, r"weight of shape \(20, 7\): expected \(5 H, 2 K"),
    ({"weight": torch.zeros(8)}, ValueError, r"weight of shape \(8,\): expected \(5 H, 2 K\)"),
    ({"weight": torch.zeros(20, 12)}, ValueError, r"h\[0\] of shape \(3, 4\): expected \(3, 6\)"),
    ({"weight": torch.zeros(30, 8)}, ValueError, r"bias of shape \(20,\): expected \(30,\)"),
    ({"bias": torch.zeros(20, 1)}, ValueError, r"bias of shape \(20, 1\): expected \(20,\)"),
    (
        {"weight": torch.zeros(2, 20, 8), "bias": None},
        ValueError,
        r"h\[0\] of shape \(3, 4\): expected 2 seeds in front",
    ),
    (
        {"c": [torch.zeros(ROWS, H), torch.zeros(1, H)]},
        ValueError,
        r"c\[1\] of shape \(1, 4\): expected \(3, 4\)",
    ),
    ({"weight": torch.zeros(20, 8).double()}, TypeError, r"weight is torch.float64: expected one"),
    ({"h": [torch.zeros(3, 4).half()] * 2}, TypeError, r"h\[0\] is torch.float16: expected torch"),
    ({"c": [torch.zeros(3, 4).half()] * 2}, TypeError, r"c\[0\] is torch.float16: expected torch"),
    ({"bias": torch.zeros(20, device="meta")}, ValueError, r"bias is on meta: expected cpu"),
]


@pytest.mark.parametrize(("wrong", "kind", "message"), WRONG)
def test_wrong_arguments(wrong: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        gated(**(GOOD | wrong))
