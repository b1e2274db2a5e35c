"""Tasks of a user's own: what `register` refuses."""

import re
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from prlstm import tasks
from prlstm.tasks import registry


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "TASKS", dict(registry.TASKS))


class Doubled(tasks.Task):
    """Every bit twice, then the terminator."""

    name, paper_name, level = "doubled", "Doubled", "R"
    symbols, answer_symbols, terminator = "01", "01$", 2

    def output_length(self, n: tasks.Size) -> tasks.Size:
        return 2 * n + 1

    def label(self, word: Sequence[int]) -> list[int]:
        return [*(bit for bit in word for _ in "12"), 2]

    def draw(self, numbers: Tensor, n: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        word = (numbers < 0.5).long()
        place = torch.arange(2 * longest + 1, device=word.device)
        twice = word.gather(1, (place // 2).clamp(max=longest - 1).expand(len(n), -1))
        return word, torch.where(place == 2 * n[:, None], 2, twice)


def test_a_task_of_sequences_is_taken() -> None:
    task = tasks.register(Doubled())
    assert tasks.get("doubled") is task
    assert tasks.names()[-1] == "doubled"
    batch = task.sample(lengths=[2, 5])
    assert batch.mask.sum(1).tolist() == [5, 11]
    # once more is no mistake
    tasks.register(Doubled())


def test_more_classes_than_tokens_widen_a_tape_of_answers() -> None:
    task = Doubled()
    assert (tasks.tape_size(task), tasks.tape_size(task, autoregressive=True)) == (3, 4)
    assert tasks.tape_size(task, 1, autoregressive=True) == 5
    words = torch.tensor([[0, 1]])
    made = tasks.tape(task, words, earlier=task.target(words))
    # the empty cell and the terminator have the same id, as in the benchmark
    assert made.tokens.tolist() == [[0, 1, 2, 0, 0, 1, 1, 2]]
    assert made.one_hot().shape == (1, 8, 4)


def changed(**parts: object) -> tasks.Task:
    return type("Doubled", (Doubled,), parts)()  # type: ignore[no-any-return]


def drawing(change: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> dict[str, object]:
    return {"draw": lambda self, *given: change(*Doubled.draw(self, *given))}


@pytest.mark.parametrize(
    ("parts", "kind", "message"),
    [
        ({"name": "a b"}, ValueError, "name='a b': expected letters, digits and underscores"),
        ({"level": "X"}, ValueError, "level='X': expected one of R, DCF, CS"),
        ({"terminator": 9}, ValueError, "terminator=9: expected a class below 3"),
        ({"output_length": lambda self, n: 5}, ValueError, "doubled.output_length does not take"),
        (
            {"output_length": lambda self, n: n if n > 2 else 3},
            ValueError,
            "doubled.output_length does not take a tensor of lengths as it takes each of them",
        ),
        (
            {"output_length": lambda self, n: n + 1},
            ValueError,
            "doubled.draw gave words (8, 1) and answers (8, 3): expected (8, 1) and (8, 2)",
        ),
        (
            drawing(lambda word, answer: (word + 1, answer)),
            ValueError,
            "doubled.draw gave words of type torch.int64 from 1 to 2 at length 1",
        ),
        (
            drawing(lambda word, answer: (word.float(), answer)),
            ValueError,
            "doubled.draw gave words of type torch.float32",
        ),
        (
            drawing(lambda word, answer: (word, 0 * answer)),
            ValueError,
            "draw answers [0, 0, 0], label [",
        ),
        ({"label": lambda self, word: [0] * 9}, ValueError, "doubled.label gave 9 answers at"),
        (
            {"terminator": 0, **drawing(lambda word, answer: (0 * word + 1, answer * 0 + 1)),
             "label": lambda self, word: [1] * (2 * len(word) + 1)},
            ValueError,
            "doubled: an answer at length 1 has no terminator",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(parts: dict[str, object], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        tasks.register(changed(**parts))
    assert "doubled" not in tasks.names()


def test_a_missing_name_is_said() -> None:
    bare = type("Bare", (tasks.Task,), {"label": Doubled.label, "draw": Doubled.draw})()
    with pytest.raises(TypeError, match="Bare has no name: expected it as a class attribute"):
        tasks.register(bare)


def test_mixed_lengths_are_held_against_the_definition() -> None:
    # right alone, wrong beside longer rows: the end is taken from the longest
    def draw(self: Doubled, numbers: Tensor, n: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        return Doubled.draw(self, numbers, torch.full_like(n, longest), longest)

    with pytest.raises(ValueError, match="in a batch of mixed lengths draw and label disagree"):
        tasks.register(changed(draw=draw))


@pytest.mark.parametrize("name", tasks.names())
def test_the_fifteen_pass(name: str) -> None:
    tasks.verify(tasks.get(name))
