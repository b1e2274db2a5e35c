"""Scores: the protocol's means, however the words are batched."""

import pytest
import torch
from torch import Tensor

from prlstm import models, tasks
from prlstm.evaluation import evaluate
from prlstm.models import Model
from prlstm.models.options import TapeOptions
from prlstm.models.reading import Reading


class Oracle(torch.nn.Module):
    """Answers parity rightly, but for words whose first bit is one and that are longer than 20."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor, reading: Reading, target: Tensor | None = None) -> Tensor:
        right = x[..., 1].sum(1).long() % 2
        n = reading.input_lengths
        wrong = (x[:, 0, 1] == 1) & (torch.as_tensor(n) > 20)
        return torch.nn.functional.one_hot(right ^ wrong.long(), 2).double()[:, None]


def test_right_and_wrong_answers_are_counted() -> None:
    task = tasks.get("parity_check")
    (counts,) = evaluate(Model("oracle", task, TapeOptions(), Oracle()), [20, 3, 21], 128)
    assert counts.lengths == (3, 20, 21)
    assert counts.correct.shape == counts.total.shape == (3, 2)
    assert counts.total.tolist() == [[64, 64]] * 3
    assert counts.accuracy[:2].tolist() == [1, 1]
    assert 0.3 < counts.accuracy[2] < 0.7
    assert counts.score == pytest.approx(float(counts.accuracy.mean()))


@pytest.mark.parametrize("name", ["parity_check", "stack_manipulation", "modular_arithmetic"])
@pytest.mark.parametrize("model", ["pr_lstm", "lstm", "tape_rnn"])
def test_batches_of_any_size_give_the_same(name: str, model: str) -> None:
    built = models.build(model, name, hidden_size=5, seed=0, dtype=torch.float64)
    lengths = [1, 2, 5, 6, 17, 30]
    few, many = (evaluate(built, lengths, 64, cells=cells)[0] for cells in (1, 1 << 20))
    assert few.correct.equal(many.correct)
    assert few.total.equal(many.total)
    (more,) = evaluate(built, [5, 30], 128)
    # the first words of a length are the same ones
    assert more.correct[:, 0].equal(many.correct[[2, 5], 0])
    assert built.training


def test_stacked_seeds_are_scored_as_alone() -> None:
    alone = [models.build("pr_lstm", "bucket_sort", hidden_size=5, seed=s) for s in range(3)]
    together = evaluate(models.Stacked(alone), range(5, 15), 64)
    assert len(together) == 3
    for seed, model in enumerate(alone):
        (lone,) = evaluate(model, range(5, 15), 64)
        assert together[seed].correct.equal(lone.correct)
        assert together[seed].total.equal(lone.total)


def test_pooling_is_that_of_the_protocol() -> None:
    """Pooled in a sub-batch, averaged over these, then over lengths."""
    model = models.build("rnn", "binary_addition", hidden_size=5, seed=0)
    (counts,) = evaluate(model, [4, 9], 128)
    pairs = zip(counts.correct.tolist(), counts.total.tolist(), strict=True)
    shares = [[c / t for c, t in zip(correct, total, strict=True)] for correct, total in pairs]
    want = [sum(row) / 2 for row in shares]
    assert counts.accuracy.tolist() == pytest.approx(want)
    assert counts.score == pytest.approx(sum(want) / 2)


def test_what_is_refused() -> None:
    model = models.build("rnn", "parity_check", hidden_size=4)
    with pytest.raises(ValueError, match="samples=100: expected a multiple of 64"):
        evaluate(model, [5], 100)
    with pytest.raises(ValueError, match="expected lengths >= 1"):
        evaluate(model, [])
    with pytest.raises(ValueError, match="expected lengths >= 1"):
        evaluate(model, [0, 4])
