"""Whether a task keeps the promises of its contract: what `register` asks."""

import torch

from prlstm.tasks.batch import Batch
from prlstm.tasks.task import LEVELS, Task

LENGTHS = (*range(1, 13), 40)
SAMPLES = 8


def verify(task: Task) -> None:
    """Hold the parts of a task against each other at some short lengths, or say what is wrong."""
    _verify_names(task)
    _verify_lengths(task)
    generator = torch.Generator().manual_seed(0)
    for length in LENGTHS:
        _verify_batch(task, task.sample(SAMPLES, length, generator=generator), length)
    mixed = task.sample(lengths=LENGTHS, generator=generator)
    if not mixed.target.equal(task.target(mixed.input, mixed.lengths)):
        raise ValueError(f"{task.name}: in a batch of mixed lengths draw and label disagree")


def _verify_names(task: Task) -> None:
    for name in ("name", "paper_name", "level", "symbols", "answer_symbols"):
        if not hasattr(task, name):
            raise TypeError(
                f"{type(task).__name__} has no {name}: expected it as a class attribute"
            )
    if not isinstance(task.name, str) or not task.name.isidentifier():
        raise ValueError(f"name={task.name!r}: expected letters, digits and underscores")
    if task.level not in LEVELS:
        raise ValueError(f"level={task.level!r}: expected one of {', '.join(LEVELS)}")
    if task.terminator is not None and not 0 <= task.terminator < task.output_size:
        raise ValueError(f"terminator={task.terminator}: expected a class below {task.output_size}")


def _verify_lengths(task: Task) -> None:
    asked = torch.tensor(LENGTHS)
    for name in ("input_length", "output_length"):
        function = getattr(task, name)
        expected = [function(length) for length in LENGTHS]
        try:
            same = function(asked).tolist() == expected
        except (AttributeError, RuntimeError, TypeError):
            same = False
        if not same:
            raise ValueError(
                f"{task.name}.{name} does not take a tensor of lengths as it takes each of them: "
                "expected arithmetic, such as n + 1, without conditions"
            )


def _verify_batch(task: Task, batch: Batch, length: int) -> None:
    parts = (("words", batch.input, task.input_size), ("answers", batch.target, task.output_size))
    for what, ids, size in parts:
        if ids.is_floating_point() or int(ids.min()) < 0 or int(ids.max()) >= size:
            raise ValueError(
                f"{task.name}.draw gave {what} of type {ids.dtype} from {ids.min().item()} to "
                f"{ids.max().item()} at length {length}: expected integers from 0 to {size - 1}"
            )
    want = task.target(batch.input)
    if want.shape != batch.target.shape:
        raise ValueError(
            f"{task.name}.label gave {want.shape[1]} answers at length {length}: "
            f"expected at most {batch.target.shape[1]}, as output_length says"
        )
    wrong = (want != batch.target).any(1)
    if wrong.any():
        row = int(wrong.nonzero()[0])
        raise ValueError(
            f"{task.name}: for {task.show(batch.input[row])!r} draw answers "
            f"{batch.target[row].tolist()}, label {want[row].tolist()}"
        )
    ends = batch.target == (-1 if task.terminator is None else task.terminator)
    if task.terminator is not None and not ends.any(1).all():
        raise ValueError(f"{task.name}: an answer at length {length} has no terminator")
