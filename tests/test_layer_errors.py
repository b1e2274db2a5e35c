"""Wrong use: an error that names argument, value and expectation, before anything is computed."""

from collections.abc import Callable

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

from prlstm import PRLSTM

LAYER = PRLSTM(3, 5, batch_first=True)
BOTH = PRLSTM(3, 5, batch_first=True, bidirectional=True)
X = torch.randn(2, 6, 3)
PACKED = pack_sequence([torch.randn(4, 3), torch.randn(2, 3)])
STATE = LAYER(X)[1]
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
            r"input has shape \(6,\): expected \(B, T, D\)",
        ),
        (lambda: LAYER(torch.randn(1, 2, 6, 3)), ValueError, r"input has shape \(1, 2, 6, 3\)"),
        (lambda: PRLSTM(3, 5)(torch.randn(6)), ValueError, r"expected \(T, B, D\)"),
        (lambda: LAYER(torch.randn(2, 6, 4)), ValueError, r"\(2, 6, 4\): expected 3 features"),
        (lambda: LAYER(torch.randn(2, 0, 3)), ValueError, "sequence is empty, expected T >= 1"),
        (lambda: LAYER(torch.ones(2, 6, 3).long()), TypeError, "input has type torch.int64"),
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
        (lambda: LAYER(X, lengths=[1.5, 2.0]), TypeError, "expected one integer for each row"),
        (lambda: LAYER(X, lengths=torch.tensor(3)), TypeError, "expected one integer for each row"),
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
        (lambda: LAYER(X[:1], LAYER(X[0])[1]), ValueError, "of one unbatched sequence, expected"),
        (
            lambda: BOTH(X, BOTH(X)[1]),
            ValueError,
            "cannot be continued, this layer is bidirectional",
        ),
        (lambda: LAYER(X, BOTH(X)[1]), ValueError, "the layer it came from was bidirectional"),
        (lambda: LAYER(X, STATE.to(torch.float64)), TypeError, r"hx\[0\] has type torch.float64"),
        (lambda: LAYER(X, STATE.to("meta")), ValueError, r"hx\[0\] is on meta: expected cpu"),
        (
            lambda: LAYER(X, (ZEROS,)),
            ValueError,
            "hx holds 1 tensors: a state of cell 'lstm' has 2",
        ),
        (lambda: LAYER(X, (ZEROS, ZEROS[:, :1])), ValueError, r"hx\[1\] has shape \(1, 1, 5\)"),
        (lambda: LAYER(X, (ZEROS.long(), ZEROS)), TypeError, r"hx\[0\] has type torch.int64"),
        (lambda: LAYER(X, (ZEROS, None)), TypeError, r"hx\[1\] is a NoneType: expected a tensor"),
        (lambda: LAYER(X, "zeros"), TypeError, "hx is a str: expected a State"),
        (lambda: LAYER.trace(torch.randn(2, 6, 4)), ValueError, "expected 3 features"),
    ],
)
def test_call(call: Callable[[], object], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()
