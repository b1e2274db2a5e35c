"""Transformers: where features are dropped, what a cell sees, where it stands."""

import pytest
import torch
from torch import Tensor

from prlstm import models
from prlstm.models import attention
from prlstm.models.positions import count_down, distance_penalty, rotated, slopes
from prlstm.models.reading import Reading
from prlstm.stream import keys, uniform
from tests.compare import assert_rel
from tests.models.test_laws import TRANSFORMER


def test_dropout_at_evaluation_only_where_asked() -> None:
    words = torch.randint(2, (2, 5))
    for asked in (False, True):
        model = models.build(
            "transformer_encoder", "parity_check", dropout=0.5, dropout_at_evaluation=asked
        )
        model.eval()
        assert model(words).equal(model(words)) is not asked
        model.train()
        assert not model(words).equal(model(words))


def test_slopes_of_heads() -> None:
    like = torch.zeros((), dtype=torch.float64)
    assert slopes(8, like).tolist() == [2.0**-k for k in range(1, 9)]
    assert slopes(1, like).tolist() == [2.0**-8]
    want = [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8, 2.0**-1, 2.0**-3]
    assert slopes(6, like).tolist() == pytest.approx(want, rel=1e-15)


@pytest.mark.parametrize(
    ("name", "positions", "places"),
    [
        ("transformer_encoder", "sin_cos", 5),
        ("transformer_encoder", "alibi", 4),
        ("transformer", "sin_cos", 12),
        ("transformer", "none", 10),
    ],
)
def test_where_features_are_dropped(
    name: str, positions: str, places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the positions, and after every step of every layer."""
    model = models.build(name, "reverse_string", **TRANSFORMER, positions=positions, seed=0)
    drawn = []

    def counted(key: Tensor, time: int, count: int) -> Tensor:
        drawn.append((time, count))
        return uniform(key, time, count)

    monkeypatch.setattr(attention, "uniform", counted)
    words, noise = torch.randint(2, (2, 5)), keys([3], "dropout")
    first = model(words, target=words, noise=noise)
    assert [time for time, _ in drawn] == list(range(places))
    assert model(words, target=words, noise=noise).equal(first)
    assert not model(words, target=words, noise=keys([4], "dropout")).equal(first)
    assert not model(words, target=words).equal(first)


def test_as_many_features_are_dropped_as_said() -> None:
    drop = attention.Dropout(0.25, always=False)(keys([0], "dropout"))
    dropped = drop(torch.ones(100, 1000))
    assert float((dropped == 0).float().mean()) == pytest.approx(0.25, abs=0.01)
    assert float(dropped.max()) == pytest.approx(1 / 0.75)


def test_a_window_is_half_to_each_side() -> None:
    model = models.build(
        "transformer_encoder", "reverse_string", window=5, num_layers=1, seed=0
    ).eval()
    x = torch.randn(1, 9, 3)
    with torch.no_grad():
        before = model.network(x, Reading(0, 9, 9, 9))
        x[0, 4] += 1
        changed = (model.network(x, Reading(0, 9, 9, 9)) != before).any(-1)[0]
    assert changed.tolist() == [False, False, True, True, True, True, True, False, False]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_far_positions_are_told_apart_in_half_precision(dtype: torch.dtype) -> None:
    x, exact = torch.zeros(1, 500, 16, dtype=dtype), torch.zeros(1, 500, 16, dtype=torch.float64)
    assert_rel("sin_cos", count_down(x, 500), count_down(exact, 500), 5e-3)
    q = torch.ones(1, 1, 500, 8, dtype=dtype)
    assert_rel("rotary", rotated(q), rotated(q.double()), 5e-3)
    bias, want = distance_penalty(2, q), distance_penalty(2, q.double())
    assert_rel("alibi", bias, want, 5e-3)
