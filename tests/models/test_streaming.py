"""A word that is fed in pieces is answered as the whole word."""

import pytest
import torch

from prlstm import models
from prlstm.models import streaming
from prlstm.models.streaming import WordStream

IN_CONSTANT_MEMORY = ("pr_lstm", "pr_rnn", "pr_gru", "rnn", "lstm", "gru")


def small(model: str, task: str, **more: object) -> models.Model:
    sizes: dict[str, object] = {"hidden_size": 6}
    if model.startswith("transformer"):
        sizes = {"embedding_size": 8, "num_layers": 1, "num_heads": 2}
    return models.build(model, task, dtype=torch.float64, **{"seed": 0} | sizes | more).eval()


def want(model: models.Model, word: torch.Tensor) -> list[int]:
    with torch.no_grad():
        answer: list[int] = model(word[None])[0].argmax(-1).tolist()
    return answer


@pytest.mark.parametrize("name", models.names())
@pytest.mark.parametrize("task", ["parity_check", "bucket_sort"])
def test_pieces_are_the_whole(name: str, task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "CHUNK", 5)
    model = small(name, task)
    word = model.task.sample(1, 23, generator=torch.Generator()).input[0]
    stream = WordStream(model)
    assert stream.in_constant_memory == (name in IN_CONSTANT_MEMORY)
    for piece in word.split([1, 12, 3, 7]):
        stream.feed(piece)
        # asking changes nothing
        for _ in range(2):
            assert list(stream.answer()) == want(model, word[: stream.count])


@pytest.mark.parametrize("more", [{"computation": 2}, {"autoregressive": True}])
@pytest.mark.parametrize("name", ["pr_lstm", "lstm"])
def test_other_tapes(name: str, more: dict[str, object]) -> None:
    for seed in range(20):
        model = small(name, "reverse_string", **more, seed=seed)
        word = model.task.sample(1, 9, generator=torch.Generator()).input[0]
        stream = WordStream(model)
        stream.feed(word.tolist())
        assert list(stream.answer()) == want(model, word)
    assert stream.in_constant_memory == ("computation" in more)


def test_an_empty_word() -> None:
    stream = WordStream(small("pr_lstm", "parity_check"))
    stream.feed([])
    with pytest.raises(ValueError, match="the word is empty: expected at least one token"):
        list(stream.answer())
