"""Wrong use: an error that names argument, value and expectation, before anything is computed."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence

from prlstm import PRLSTM
from prlstm.cells import GatedBlock

LAYER = PRLSTM(3, 5, batch_first=True)
HALF = PRLSTM(3, 5, batch_first=True, dtype=torch.bfloat16)
DOUBLE = PRLSTM(3, 5, batch_first=True, dtype=torch.float64)
BOTH = PRLSTM(3, 5, batch_first=True, bidirectional=True)
X = torch.randn(2, 6, 3)
PACKED = pack_sequence([torch.randn(4, 3), torch.randn(2, 3)])
STATE, ONE_STATE, BOTH_STATE = LAYER(X)[1], LAYER(X[0])[1], BOTH(X)[1]
ZEROS = torch.zeros(1, 2, 5)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"input_size": 0}, "input_size=0: expected an integer >= 1"),
        ({"hidden_size": 2.5}, "hidden_size=2.5"),
        ({"hidden_size": -1}, "hidden_size=-1"),
        ({"num_layers": 0}, "num_layers=0"),
        ({"refine": -1}, "refine=-1: expected an integer >= 0"),
        ({"dropout": 1.5}, r"dropout=1.5: expected a probability in \[0, 1\]"),
        ({"proj_size": 2}, "proj_size=2: PRLSTM has no projections"),
        ({"cell": "elman"}, "cell='elman': expected one of 'lstm', 'relu', 'gru'"),
        ({"cell": "gru"}, "refine=1: the gru cell has no refinement, pass refine=0"),
        ({"dtype": torch.int64}, "dtype=torch.int64: expected a floating-point type"),
        ({"dtype": "float32"}, "dtype='float32': expected a floating-point type"),
        ({"bidirectional": 2}, "bidirectional=2: expected True or False"),
        ({"bias": None}, "bias=None: expected True or False"),
        ({"dropout": "a"}, "dropout='a': expected a probability"),
        ({"dropout": True}, "dropout=True: expected a probability"),
        ({"num_layers": True}, "num_layers=True"),
        ({"cell": []}, r"cell=\[\]: expected one of"),
        ({"cell": torch.nn.Linear(2, 3)}, "cell=Linear.*: expected one of .* or a cell class"),
    ],
)
def test_constructor(arguments: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        PRLSTM(**{"input_size": 3, "hidden_size": 5} | arguments)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (
            lambda: LAYER(torch.randn(6)),
            ValueError,
            r"input has shape \(6,\): expected \(T, B, D\)",
        ),
        (lambda: LAYER(torch.randn(1, 2, 6, 3)), ValueError, r"input has shape \(1, 2, 6, 3\)"),
        (lambda: PRLSTM(3, 5)(torch.randn(6)), ValueError, r"expected \(T, B, D\)"),
        (lambda: LAYER(torch.randn(2, 6, 4)), ValueError, r"\(2, 6, 4\): expected 3 features"),
        (lambda: LAYER(torch.randn(2, 0, 3)), ValueError, "sequence is empty, expected T >= 1"),
        (lambda: LAYER(torch.ones(2, 6, 3) > 0), TypeError, "input has type torch.bool"),
        (
            lambda: LAYER(torch.ones(2, 6, 3).long()),
            ValueError,
            "ids, and has shape .2, 6, 3.: expected 1 or 2 dimensions, or float",
        ),
        (lambda: LAYER(torch.full((2, 6), 9)), ValueError, "the id 9: expected 0 <= id < input_"),
        (lambda: LAYER(torch.full((2, 6), -1)), ValueError, "the id -1: expected 0 <= id < inpu"),
        (lambda: LAYER(X, [6, 2]), TypeError, r"hx\[0\] is of type int: .* lengths=\.\.\."),
        (lambda: LAYER(X.double()), TypeError, "torch.float64: expected torch.float32"),
        (lambda: LAYER(X.to("meta")), ValueError, "input is on meta: expected cpu"),
        (lambda: LAYER([1.0, 2.0]), TypeError, "input is a list"),
        (lambda: LAYER(pack_sequence([torch.randn(4, 2)])), ValueError, "input.data has shape"),
        (
            lambda: LAYER(X, lengths=[6, 7]),
            ValueError,
            r"lengths\[1\]=7: expected 1 <= length <= T=6",
        ),
        (lambda: LAYER(X, lengths=[0, 6]), ValueError, r"lengths\[0\]=0"),
        (lambda: LAYER(X, lengths=[6]), ValueError, r"lengths=\[6\]: expected 2 of them"),
        (lambda: LAYER(X, lengths=[1.5, 2.0]), TypeError, "an integer for each row"),
        (lambda: LAYER(X, lengths=torch.tensor(3)), TypeError, "an integer for each row"),
        (lambda: LAYER(X, lengths=3), TypeError, "lengths=3: expected a list or tensor"),
        (lambda: LAYER(X, lengths={6, 2}), TypeError, "lengths="),
        (lambda: LAYER(X, lengths=[torch.tensor(2.5)] * 2), TypeError, "lengths="),
        (lambda: LAYER(X, lengths=[torch.tensor([2, 2])] * 2), TypeError, "lengths="),
        (lambda: LAYER(X, lengths=[torch.tensor(True)] * 2), TypeError, "lengths="),
        (
            lambda: LAYER(X.to(torch.complex64)),
            TypeError,
            "complex64: expected floating point, or ",
        ),
        (lambda: LAYER(X, (ZEROS, ZEROS.long())), TypeError, r"hx\[1\] has type torch.int64"),
        (lambda: LAYER(X, (ZEROS, ZEROS.double())), TypeError, r"hx\[1\] has type torch.float64"),
        (lambda: LAYER(X, lengths=[True, True]), TypeError, "lengths="),
        (lambda: LAYER(X, lengths=torch.tensor([True, True])), TypeError, "lengths="),
        (
            lambda: LAYER(PACKED, lengths=[4, 2]),
            ValueError,
            "PackedSequence brings its own lengths",
        ),
        (lambda: LAYER(X, output="first"), ValueError, "output='first': expected 'all', 'last' or"),
        (lambda: LAYER(X, output=(2, 2)), ValueError, r"output=\(2, 2\): .* stop <= T=6"),
        (lambda: LAYER(X, output=(-1, 2)), ValueError, r"output=\(-1, 2\)"),
        (lambda: LAYER(X, output=(0, 7)), ValueError, r"output=\(0, 7\)"),
        (lambda: LAYER(X, output=(0.0, 7)), ValueError, r"output=\(0.0, 7\)"),
        (lambda: LAYER(X, output=(False, True)), ValueError, r"output=\(False, True\)"),
        (lambda: LAYER(X, output=None), ValueError, "output=None"),
        (lambda: LAYER(PACKED, output=(0, 2)), ValueError, "pass a padded tensor and lengths"),
        (
            lambda: LAYER(X[:1], STATE),
            ValueError,
            r"hx\[0\] has shape \(1, 2, 5\): expected \(1, 1, 5\)",
        ),
        (lambda: PRLSTM(3, 4, batch_first=True)(X, STATE), ValueError, r"expected \(1, 2, 4\)"),
        (lambda: PRLSTM(3, 5, 2, batch_first=True)(X, STATE), ValueError, r"expected \(2, 2, 5\)"),
        (
            lambda: PRLSTM(3, 5, batch_first=True, cell="relu")(X, STATE),
            ValueError,
            "a state of cell 'lstm', expected 'relu'",
        ),
        (lambda: LAYER(X[0], STATE), ValueError, "of a batch, expected one of one unbatched"),
        (lambda: LAYER(X[:1], ONE_STATE), ValueError, "of one unbatched sequence, expected"),
        (
            lambda: BOTH(X, BOTH_STATE),
            ValueError,
            "cannot be continued, this layer is bidirectional",
        ),
        (lambda: LAYER(X, BOTH_STATE), ValueError, "the layer it came from was bidirectional"),
        (lambda: LAYER(X, STATE.to(torch.float64)), TypeError, r"hx\[0\] has type torch.float64"),
        (lambda: LAYER(X, STATE.to("meta")), ValueError, r"hx\[0\] is on meta: expected cpu"),
        (
            lambda: LAYER(X, (ZEROS,)),
            ValueError,
            "hx holds 1 tensor: a state of cell 'lstm' has 2",
        ),
        (lambda: LAYER(X, (ZEROS, ZEROS[:, :1])), ValueError, r"hx\[1\] has shape \(1, 1, 5\)"),
        (lambda: LAYER(X, (ZEROS.long(), ZEROS)), TypeError, r"hx\[0\] has type torch.int64"),
        (
            lambda: LAYER(X, (ZEROS, None)),
            TypeError,
            r"hx\[1\] is of type NoneType: expected a tensor",
        ),
        (
            lambda: LAYER(X, (ZEROS.bfloat16(), ZEROS)),
            TypeError,
            r"hx\[0\] has type torch.bfloat16",
        ),
        (
            lambda: HALF(X.bfloat16(), (ZEROS, ZEROS)),
            TypeError,
            r"hx\[0\] has type torch.float32: expected torch.bfloat16",
        ),
        (lambda: LAYER.trace(PACKED), TypeError, "input is a PackedSequence: expected a tensor"),
        (lambda: LAYER(X, "zeros"), TypeError, "hx is a str: expected a State"),
        (lambda: LAYER.trace(torch.randn(2, 6, 4)), ValueError, "expected 3 features"),
    ],
)
def test_call(
    call: Callable[[], object],
    error: type[Exception],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def computed(*_: object) -> None:
        pytest.fail("something was computed before the error")

    monkeypatch.setattr(GatedBlock, "forward", computed)
    with pytest.raises(error, match=says):
        call()


@pytest.mark.parametrize("layer", [LAYER, DOUBLE])
def test_autocast_does_not_cast_float64(layer: PRLSTM) -> None:
    right, wrong = (X, X.double()) if layer is LAYER else (X.double(), X)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with pytest.raises(TypeError, match="input has type"):
            layer(wrong)
        with pytest.raises(TypeError, match=r"hx\[0\] has type"):
            layer(right, (ZEROS.to(wrong.dtype), ZEROS.to(wrong.dtype)))


class Whole(nn.Module):
    """A cell that works; each of its children lacks something."""

    def __init__(self, input_size: int, hidden_size: int, **_: object) -> None:
        super().__init__()
        self.hidden_size, self.state_sizes = hidden_size, (hidden_size,)

    def leaf(self, x: Tensor) -> tuple[Tensor, ...]:
        return (x[..., :1].expand(*x.shape[:-1], self.hidden_size),)

    def merge(self, left: tuple[Tensor, ...], right: tuple[Tensor, ...]) -> object:
        return (left[0] - right[0],)


class NoMerge(Whole):
    merge = None


class BareLeaf(Whole):
    def leaf(self, x: Tensor) -> Tensor:
        return super().leaf(x)[0]


class BareMerge(Whole):
    def merge(self, left: tuple[Tensor, ...], right: tuple[Tensor, ...]) -> Tensor:
        return left[0]


class WrongSizes(Whole):
    def __init__(self, input_size: int, hidden_size: int, **_: object) -> None:
        super().__init__(input_size, hidden_size)
        self.state_sizes = (hidden_size + 1,)


class NoKeywords(Whole):
    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)


class HasReverse(Whole):
    reverse = True


@pytest.mark.parametrize(
    ("cell", "error", "says"),
    [
        (NoMerge, TypeError, "cell NoMerge: expected a function 'merge'"),
        (WrongSizes, ValueError, r"cell WrongSizes: state_sizes=\(6,\), expected .* hidden_size=5"),
        (HasReverse, ValueError, "cell HasReverse: the name 'reverse' is kept"),
        (NoKeywords, TypeError, r"built by \(input_size, hidden_size, \*, refine, .* but .*refine"),
        (lambda *_, **__: 3, TypeError, "cell int: expected an nn.Module"),
        (BareLeaf, ValueError, r"leaf of BareLeaf returned Tensor: expected a tuple of tensors"),
        (BareMerge, ValueError, r"merge returned Tensor\(1, 1, 5\): expected a tuple"),
    ],
)
def test_own_cell(cell: type[nn.Module], error: type[Exception], says: str) -> None:
    PRLSTM(3, 5, cell=Whole)(torch.randn(2, 3))
    with pytest.raises(error, match=says):
        PRLSTM(3, 5, cell=cell)(torch.randn(2, 3))
