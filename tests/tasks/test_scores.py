"""Loss and accuracy, worked out by hand."""

import math

import pytest
import torch

from prlstm import tasks

# two rows, two answers, three classes: right, wrong; a tie that the first class wins, right
LOGITS = torch.tensor(
    [[[0.0, 2.0, 0.0], [3.0, 0.0, 0.0]], [[1.0, 1.0, 0.0], [0.0, 0.0, 4.0]]], dtype=torch.float64
)
TARGET = torch.tensor([[1, 2], [0, 2]])
EACH = [
    math.log(2 + math.e**2) - 2,
    math.log(2 + math.e**3),
    math.log(1 + 2 * math.e) - 1,
    math.log(2 + math.e**4) - 4,
]


def test_loss_is_the_mean_over_rows_and_answers() -> None:
    assert float(tasks.loss(LOGITS, TARGET)) == pytest.approx(sum(EACH) / 4, rel=1e-12)


def test_loss_leaves_out_what_a_row_does_not_have() -> None:
    mask = torch.tensor([[True, True], [True, False]])
    assert float(tasks.loss(LOGITS, TARGET, mask)) == pytest.approx(sum(EACH[:3]) / 3, rel=1e-12)
    # whatever is there
    poisoned = torch.where(mask[..., None], LOGITS, torch.nan).requires_grad_()
    loss = tasks.loss(poisoned, TARGET, mask)
    assert loss.item() == pytest.approx(sum(EACH[:3]) / 3, rel=1e-12)
    loss.backward()
    assert poisoned.grad is not None
    assert poisoned.grad[1, 0].isfinite().all()


def test_accuracy_is_pooled() -> None:
    everything = torch.ones(2, 2, dtype=torch.bool)
    assert float(tasks.accuracy(LOGITS, TARGET, everything)) == 0.75
    mask = torch.tensor([[True, True], [True, False]])
    assert float(tasks.accuracy(LOGITS, TARGET, mask)) == pytest.approx(2 / 3)
    correct, total = tasks.count(LOGITS, TARGET, mask)
    assert (correct.tolist(), total.tolist()) == ([1, 1], [2, 1])


def test_zeros_behind_the_terminator_are_trained_on_and_not_counted() -> None:
    task = tasks.get("binary_addition")
    # 1 + 1: answer 0 1 2 0
    batch_target = task.target(torch.tensor([[1, 2, 1]]))
    assert batch_target.tolist() == [[0, 1, 2, 0]]
    logits = torch.nn.functional.one_hot(torch.tensor([[0, 1, 2, 1]]), 3).double()
    mask = task.mask(batch_target)
    assert float(tasks.accuracy(logits, batch_target, mask)) == 1
    right, wrong = math.log(2 + math.e) - 1, math.log(2 + math.e)
    assert float(tasks.loss(logits, batch_target)) == pytest.approx((3 * right + wrong) / 4)


def test_of_equal_logits_the_first_wins() -> None:
    logits = torch.zeros(1, 5, 5)
    counts = tasks.count(logits, torch.arange(5)[None], torch.ones(1, 5, dtype=torch.bool))
    assert counts.correct.tolist() == [1]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_logits_are_widened(dtype: torch.dtype) -> None:
    loss = tasks.loss(LOGITS.to(dtype), TARGET)
    assert loss.dtype == torch.float32
    assert float(loss) == pytest.approx(sum(EACH) / 4, rel=1e-6)


def test_loss_of_stacked_seeds() -> None:
    stacked = torch.stack([LOGITS, -LOGITS])
    each = torch.func.vmap(tasks.loss, (0, None))(stacked, TARGET)
    assert each.tolist() == [float(tasks.loss(one, TARGET)) for one in stacked]


def test_wrong_types_are_named() -> None:
    with pytest.raises(TypeError, match=r"target of type torch.int32: expected torch.int64"):
        tasks.loss(LOGITS, TARGET.int())
    with pytest.raises(TypeError, match=r"target of type torch.float32: expected torch.int64"):
        tasks.count(LOGITS, TARGET.float(), TARGET > 0)
    # no class is left out
    with pytest.raises(RuntimeError):
        tasks.loss(LOGITS, torch.full_like(TARGET, -100))


def test_wrong_shapes_are_named() -> None:
    with pytest.raises(ValueError, match=r"logits of shape \(2, 2, 3\) for target of shape \(2,\)"):
        tasks.loss(LOGITS, torch.tensor([0, 1]))
    with pytest.raises(ValueError, match=r"mask of shape \(2,\), torch.bool: expected \(2, 2\)"):
        tasks.accuracy(LOGITS, TARGET, torch.tensor([True, False]))
    with pytest.raises(ValueError, match=r"mask of shape \(2, 2\), torch.int64: .* torch.bool"):
        tasks.count(LOGITS, TARGET, TARGET)
