"""The gated block for any number of incoming states, against its equations one gate at a time."""

import pytest
import torch

from prlstm.cells import GatedBlock, gated_block


@pytest.mark.parametrize("states", [0, 1, 2, 3])
@pytest.mark.parametrize("bias", [True, False])
def test_equations(states: int, bias: bool) -> None:
    hidden, size = 4, 7
    block = GatedBlock(states, size, hidden, bias, dtype=torch.float64)
    if block.bias is not None:
        torch.nn.init.normal_(block.bias)
    z = torch.randn(2, 5, size, dtype=torch.float64)
    cells = [torch.randn(2, 5, hidden, dtype=torch.float64) for _ in range(states)]

    def gate(row: int) -> torch.Tensor:
        rows = slice(row * hidden, (row + 1) * hidden)
        product = torch.einsum("btk,hk->bth", z, block.weight[rows])
        return product if block.bias is None else product + block.bias[rows]

    c = torch.sigmoid(gate(states)) * torch.tanh(gate(states + 2))
    for j, c_in in enumerate(cells):
        c = c + torch.sigmoid(gate(j)) * c_in
    h = torch.sigmoid(gate(states + 1)) * torch.tanh(c)
    got_h, got_c = block(z, *cells)
    torch.testing.assert_close(got_c, c)
    torch.testing.assert_close(got_h, h)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_keeps_gates_and_c_wide(dtype: torch.dtype) -> None:
    weight, z = torch.randn(8 * 4, 6).to(dtype), torch.randn(3, 6).to(dtype)
    h, c = gated_block(z, [torch.randn(3, 8)], weight, None)
    assert (h.dtype, c.dtype) == (dtype, torch.float32)


def test_repr_names_the_gates() -> None:
    assert repr(GatedBlock(0, 3, 8)) == "GatedBlock(3 -> 8 x (i, o, u))"
    assert repr(GatedBlock(1, 8, 8)) == "GatedBlock(8 -> 8 x (f, i, o, u))"
    assert repr(GatedBlock(3, 24, 8, bias=False)) == (
        "GatedBlock(24 -> 8 x (f_1, f_2, f_3, i, o, u), bias=False)"
    )
