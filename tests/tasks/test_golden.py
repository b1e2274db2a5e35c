"""Equality with the words, answers, tapes and scores of the reference implementation."""

import re

import pytest
import torch

from prlstm import tasks
from tests.golden import arrays


@pytest.mark.parametrize("name", tasks.names())
def test_answers_and_masks(name: str) -> None:
    task, golden = tasks.get(name), arrays(f"tasks_{name}")
    sizes = [int(golden[key]) for key in ("input_size", "output_size", "single_output")]
    assert [task.input_size, task.output_size, task.single_output] == sizes
    lengths = golden["lengths"].tolist()
    assert len(lengths) == 16
    for length in lengths:
        words, answers = golden[f"in_{length}"], golden[f"out_{length}"].long()
        n = words.shape[1]
        assert n == task.input_length(length)
        assert answers.shape[1] == task.output_length(n)
        assert task.target(words).equal(answers), length
        assert task.mask(answers).equal(golden[f"mask_{length}"]), length


def test_tapes() -> None:
    golden = arrays("tasks_tape")
    cases = [key.removesuffix("_input") for key in golden if key.endswith("_input")]
    assert len(cases) == 18
    for case in cases:
        found = re.fullmatch(r"(\w+)_L\d+_c(\d)", case)
        assert found is not None, case
        task, computation = tasks.get(found[1]), int(found[2])
        made = tasks.tape(task, golden[f"{case}_input"].long(), computation=computation)
        want = golden[f"{case}_tape"]
        assert made.one_hot().equal(want), case
        assert made.size == tasks.tape_size(task, computation) == want.shape[2], case
        assert made.input_lengths.eq(golden[f"{case}_input_length"]).all(), case
        assert made.answers.eq(golden[f"{case}_read_positions"]).all(), case
        assert made.lengths.eq(want.shape[1]).all(), case


def test_loss_and_accuracy() -> None:
    golden = arrays("tasks_loss_accuracy")
    names = [key.removesuffix("_logits") for key in golden if key.endswith("_logits")]
    assert len(names) == 8
    for name in names:
        logits, target = golden[f"{name}_logits"], golden[f"{name}_target"].long()
        mask = golden[f"{name}_mask"]
        if tasks.get(name).single_output:
            # the reference drops the axis of the answers
            logits, target, mask = logits[:, None], target[:, None], mask[:, None]
        assert tasks.get(name).mask(target).equal(mask), name
        loss, accuracy = tasks.loss(logits, target), tasks.accuracy(logits, target, mask)
        assert float(loss) == pytest.approx(float(golden[f"{name}_loss"]), rel=1e-6), name
        assert float(accuracy) == pytest.approx(float(golden[f"{name}_accuracy"]), rel=1e-6), name
        doubled = torch.cat([logits, logits + 3])
        assert float(tasks.loss(doubled, torch.cat([target, target]))) == pytest.approx(float(loss))
