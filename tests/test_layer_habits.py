"""What a user of `torch.nn.LSTM` relies on: shapes, arguments, types, copies, keys, repr."""

import copy
import inspect
import math
import warnings

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from prlstm import PRLSTM, State
from tests.compare import TOLERANCE, assert_rel, assert_same


def test_arguments_come_in_the_same_order() -> None:
    ours = list(inspect.signature(PRLSTM).parameters)[:7]
    assert ours == [
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
    ]
    forward = list(inspect.signature(PRLSTM.forward).parameters)
    assert forward[:3] == list(inspect.signature(nn.LSTM.forward).parameters)[:3]


@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("shape", [(7, 2, 3), (7, 3)])
def test_shapes_are_those_of_the_lstm(
    num_layers: int, bidirectional: bool, batch_first: bool, shape: tuple[int, ...]
) -> None:
    arguments = (3, 5, num_layers, True, batch_first, 0.0, bidirectional)
    ours, theirs = PRLSTM(*arguments), nn.LSTM(*arguments)
    x = torch.randn(shape)
    out, (h_n, c_n) = ours(x)
    out_lstm, (h_lstm, c_lstm) = theirs(x)
    assert (out.shape, h_n.shape, c_n.shape) == (out_lstm.shape, h_lstm.shape, c_lstm.shape)
    # a state of theirs has the shape of a plain state of ours
    again, _ = ours(x, (h_lstm, c_lstm))
    assert again.shape == out.shape
    last, _ = ours(x, output="last")
    directions = 1 + bidirectional
    rows = () if x.dim() == 2 else (x.shape[0 if batch_first else 1],)
    assert last.shape == (*rows, directions * 5)


def test_the_last_output_is_h_n() -> None:
    layer = PRLSTM(3, 5, num_layers=2, batch_first=True)
    out, (h_n, _) = layer(torch.randn(2, 9, 3))
    assert torch.equal(out[:, -1], h_n[-1])


def test_batch_first_is_a_transposition() -> None:
    first, second = PRLSTM(3, 5, batch_first=True), PRLSTM(3, 5)
    second.load_state_dict(first.state_dict())
    x = torch.randn(2, 9, 3)
    assert torch.equal(first(x)[0], second(x.transpose(0, 1))[0].transpose(0, 1))
    assert torch.equal(first(x[0])[0], second(x[0])[0])


def test_keys_and_shapes_of_the_state_dict() -> None:
    layer = PRLSTM(3, 4, num_layers=2, bidirectional=True, refine=2)
    shapes = {key: tuple(value.shape) for key, value in layer.state_dict().items()}
    expected = {}
    for k, size in enumerate((3, 8)):
        for direction in ("", "reverse."):
            start = f"layers.{k}.{direction}"
            for block, rows, columns in (
                ("leaf", 12, size),
                ("compose", 20, 8),
                ("refine.0", 16, 4),
                ("refine.1", 16, 4),
            ):
                expected[f"{start}{block}.weight"] = (rows, columns)
                expected[f"{start}{block}.bias"] = (rows,)
    assert shapes == expected
    assert not any(key.endswith("bias") for key in PRLSTM(3, 4, bias=False).state_dict())


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        ({"refine": 0}, 660_226),
        ({"refine": 1}, 923_394),
        ({"refine": 2}, 1_186_562),
        ({"cell": "relu", "refine": 1}, 198_658),
        ({"cell": "gru", "refine": 0}, 395_522),
    ],
)
def test_number_of_parameters(arguments: dict[str, object], count: int) -> None:
    read_out = 2 * (256 + 1)
    layer = PRLSTM(3, 256, **arguments)
    assert sum(p.numel() for p in layer.parameters()) + read_out == count


def test_initialisation_and_reset() -> None:
    layer = PRLSTM(400, 200)
    for name, weight in layer.named_parameters():
        if name.endswith("bias"):
            assert (weight == 0).all()
            continue
        sigma = 1 / math.sqrt(weight.shape[1])
        assert weight.abs().max() <= 2 * sigma
        assert math.isclose(weight.std().item(), 0.8796 * sigma, rel_tol=0.02)
    before = {key: value.clone() for key, value in layer.state_dict().items()}
    layer.layers[0].leaf.bias.data.fill_(3.0)
    layer.reset_parameters()
    for key, value in layer.state_dict().items():
        assert torch.equal(value, before[key]) == key.endswith("bias")


def test_gru_initialisation_makes_up_for_the_cut() -> None:
    block = PRLSTM(3, 300, cell="gru", refine=0).layers[0].compose
    for weight in (block.weight_left, block.weight_right):
        assert math.isclose(weight.std().item(), 1 / math.sqrt(300), rel_tol=0.02)
    assert (block.bias == 0).all()


def test_repr_tells_what_it_is() -> None:
    layer = PRLSTM(3, 8, num_layers=2, dropout=0.1, refine=2, bidirectional=True)
    said = repr(layer)
    for part in ("PRLSTM", "3, 8", "cell=lstm", "refine=2", "num_layers=2", "dropout=0.1"):
        assert part in said
    assert "16 -> 8 x (f_left, f_right, i, o, u)" in said
    assert "(relu)" not in repr(PRLSTM(3, 8, cell="gru", refine=0, bias=False))


def test_deepcopy_is_apart() -> None:
    layer, x = PRLSTM(3, 5), torch.randn(4, 2, 3)
    twin = copy.deepcopy(layer)
    assert torch.equal(layer(x)[0], twin(x)[0])
    twin.reset_parameters()
    assert not torch.equal(layer(x)[0], twin(x)[0])


def test_code_for_the_lstm_runs() -> None:
    layer = PRLSTM(3, 5, num_layers=2, batch_first=True)
    layer.flatten_parameters()
    assert (layer.input_size, layer.hidden_size, layer.num_layers) == (3, 5, 2)
    assert (layer.bias, layer.batch_first, layer.dropout, layer.proj_size) == (True, True, 0.0, 0)
    _, hidden = layer(torch.randn(2, 4, 3))
    assert hidden[0].shape == hidden[1].shape == (2, 2, 5)
    assert len(hidden) == 2


def test_dropout_acts_between_layers_in_training_alone() -> None:
    layer, x = PRLSTM(3, 50, num_layers=2, dropout=0.5), torch.randn(6, 2, 3)
    first, second = layer(x), layer(x)
    assert not torch.equal(first[0], second[0])
    # the lower layer's own state is not dropped
    assert torch.equal(first[1][0][0], second[1][0][0])
    layer.eval()
    assert torch.equal(layer(x)[0], layer(x)[0])


def test_dropout_of_one_layer_warns() -> None:
    with pytest.warns(UserWarning, match=r"dropout=0.5 .* num_layers=1"):
        PRLSTM(3, 5, dropout=0.5)


def test_device_and_dtype() -> None:
    layer = PRLSTM(3, 5, device="meta", dtype=torch.float64)
    assert {(p.device.type, p.dtype) for p in layer.parameters()} == {("meta", torch.float64)}
    assert PRLSTM(3, 5).to(torch.float64)(torch.randn(2, 3).double())[0].dtype == torch.float64


@pytest.mark.parametrize(("cell", "refine"), [("lstm", 1), ("relu", 1), ("gru", 0)])
@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_autocast_keeps_states_in_float32(cell: str, refine: int, half: torch.dtype) -> None:
    layer, x = PRLSTM(6, 32, cell=cell, refine=refine, batch_first=True), torch.randn(2, 21, 6)
    exact, _ = copy.deepcopy(layer).double()(x.double())
    with torch.autocast("cpu", dtype=half):
        out, state = layer(x)
        more, state = layer(x[:, :2], state)
        also, _ = layer(x.to(half))
    assert {out.dtype, more.dtype, also.dtype, *(t.dtype for t in state)} == {torch.float32}
    assert_rel("out", out, exact, TOLERANCE[half][0])
    # it did use the half-precision product
    assert not torch.equal(out, layer(x)[0])
    out.sum().backward()
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in layer.parameters())


def test_lengths_of_any_integer_kind() -> None:
    layer, x = PRLSTM(3, 5, batch_first=True), torch.randn(2, 6, 3)
    want, _ = layer(x, lengths=[6, 2])
    for lengths in (
        (6, 2),
        np.array([6, 2]),
        [np.int64(6), np.int32(2)],
        torch.tensor([6, 2], dtype=torch.uint8),
    ):
        assert torch.equal(layer(x, lengths=lengths)[0], want)
    some, _ = layer(x, output=(np.int64(1), np.int64(3)))
    assert_same("some", some, layer(x)[0][:, 1:3])


def test_it_runs_on_the_meta_device() -> None:
    layer, x = PRLSTM(3, 5, device="meta"), torch.randn(4, 2, 3, device="meta")
    _, state = layer(x)
    out, _ = layer(x, state)
    assert out.shape == (4, 2, 5)


def test_another_default_device_does_not_matter() -> None:
    layer, lengths = PRLSTM(3, 5), torch.tensor([4, 2])
    packed = pack_padded_sequence(torch.randn(4, 2, 3), lengths, enforce_sorted=False)
    with torch.device("meta"):
        out, state = layer(packed)
        layer(torch.randn(4, 2, 3, device="cpu"), state.rows([1, 0]))
    assert out.data.device.type == "cpu"


@pytest.mark.parametrize(("cell", "refine"), [("relu", 1), ("gru", 0)])
def test_half_precision_weights_give_half_precision_states(cell: str, refine: int) -> None:
    layer = PRLSTM(6, 32, cell=cell, refine=refine, dtype=torch.bfloat16)
    x = torch.randn(21, 2, 6).bfloat16()
    out, (h_n,) = layer(x)
    assert (out.dtype, h_n.dtype) == (torch.bfloat16, torch.bfloat16)
    exact, _ = copy.deepcopy(layer).double()(x.double())
    assert_rel("out", out, exact, TOLERANCE[torch.bfloat16][0])


def test_half_precision_weights_keep_c_in_float32() -> None:
    layer, x = PRLSTM(6, 32, dtype=torch.bfloat16), torch.randn(21, 2, 6).bfloat16()
    out, (h_n, c_n) = layer(x)
    assert (out.dtype, h_n.dtype, c_n.dtype) == (torch.bfloat16, torch.bfloat16, torch.float32)
    again, _ = layer(x, (h_n, c_n.bfloat16()))
    assert again.dtype == torch.bfloat16
    exact, _ = copy.deepcopy(layer).double()(x.double())
    assert_rel("out", out, exact, TOLERANCE[torch.bfloat16][0])


def test_parameters_with_a_leading_seed_axis() -> None:
    layers = [PRLSTM(3, 5, num_layers=2, batch_first=True, dtype=torch.float64) for _ in range(3)]
    stacked = {
        key: torch.stack(
            [dict(one.named_parameters())[key].detach() for one in layers]
        ).requires_grad_()
        for key in layers[0].state_dict()
    }
    x = torch.randn(3, 2, 13, 3, dtype=torch.float64)

    def forward(parameters: dict[str, Tensor], x: Tensor) -> tuple[Tensor, State]:
        result: tuple[Tensor, State] = functional_call(layers[0], parameters, (x,))
        return result

    out, state = vmap(forward)(stacked, x)
    out.square().sum().backward()
    for seed, one in enumerate(layers):
        alone, alone_state = one(x[seed])
        assert_same("out", out[seed], alone)
        assert_same("state", state.final[0][seed], alone_state[0])
        alone.square().sum().backward()
        for key, parameter in one.named_parameters():
            assert parameter.grad is not None
            assert_rel(key, stacked[key].grad[seed], parameter.grad, 1e-10)


def test_non_finite_input_is_not_repaired() -> None:
    layer, x = PRLSTM(3, 5, batch_first=True), torch.randn(1, 9, 3)
    clean, _ = layer(x)
    x[0, 4, 1] = float("nan")
    out, state = layer(x)
    assert torch.equal(out[:, :4], clean[:, :4])
    assert out[:, 4:].isnan().all()
    assert state[0].isnan().all()


def test_counts_of_a_bidirectional_range_are_those_of_its_forward_direction() -> None:
    x, lengths = torch.randn(3, 20, 3), [20, 9, 3]
    for num_layers in (1, 2):
        layer = PRLSTM(3, 5, num_layers, batch_first=True, bidirectional=True)
        assert layer(x, lengths=lengths, output=(2, 6))[1].counts == (6, 6, 3)
        assert layer(x, lengths=lengths)[1].counts == (20, 9, 3)


def test_an_empty_batch_gives_an_empty_result() -> None:
    out, state = PRLSTM(3, 5, batch_first=True)(torch.randn(0, 4, 3))
    assert out.shape == (0, 4, 5)
    assert state[0].shape == (1, 0, 5)


def test_packed_sequence_of_a_padded_batch() -> None:
    layer, lstm = PRLSTM(3, 5), nn.LSTM(3, 5)
    packed = pack_padded_sequence(torch.randn(6, 3, 3), [2, 6, 4], enforce_sorted=False)
    out, (h_n, _) = layer(packed)
    out_lstm, (h_lstm, _) = lstm(packed)
    assert isinstance(out, PackedSequence)
    assert out.data.shape == out_lstm.data.shape
    assert h_n.shape == h_lstm.shape
    last, _ = layer(packed, output="last")
    assert_same("last", last, h_n[0])


def test_no_warning_in_ordinary_use() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PRLSTM(3, 5, num_layers=2, dropout=0.2)(torch.randn(4, 3))
