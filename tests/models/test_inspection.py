"""What a look inside shows is what the model computes."""

import pytest
import torch

from prlstm import models, tasks
from prlstm.models.inspection import MOST, inspect


def model_of(task: str, name: str = "pr_lstm", **more) -> models.Model:
    return models.build(name, task, hidden_size=6, seed=0, **more).eval()


@pytest.mark.parametrize("name", ["pr_lstm", "pr_rnn", "pr_gru"])
@pytest.mark.parametrize(
    "task", ["parity_check", "bucket_sort", "stack_manipulation", "missing_duplicate_string"]
)
def test_answers_are_those_of_each_prefix_alone(task: str, name: str) -> None:
    model = model_of(task, name)
    word = tasks.get(task).sample(1, 70, generator=torch.Generator().manual_seed(1)).input[0]
    seen = inspect(model, word.tolist())
    assert len(seen.answers) == len(word)
    for count, answer in enumerate(seen.answers, 1):
        probabilities = model(word[None, :count]).softmax(-1)[0]
        assert answer.classes == probabilities.argmax(-1).tolist()
        assert answer.sure == pytest.approx(probabilities.max(-1).values.tolist(), abs=1e-5)


def test_nodes_are_those_of_the_tree_over_the_tape() -> None:
    model = model_of("parity_check")
    seen = inspect(model, [0, 1, 1, 0, 1])
    # five tokens, and the empty cell where the answer is read
    assert len(seen.cells) == 6
    cell = model.network.layer.layers[0]
    leaves = [seen.block(0, place) for place in range(6)]
    pair = cell.merge(leaves[0], leaves[1])
    four = cell.merge(pair, cell.merge(leaves[2], leaves[3]))
    last = cell.merge(four, cell.merge(leaves[4], leaves[5]))
    for got, want in ((seen.block(1, 0), pair), (seen.block(2, 0), four), (seen.prefix(6), last)):
        for one, other in zip(got, want, strict=True):
            torch.testing.assert_close(one, other)
    for one, other in zip(seen.prefix(5), cell.merge(four, leaves[4]), strict=True):
        torch.testing.assert_close(one, other)


def test_the_truth_is_told_where_there_is_one() -> None:
    seen = inspect(model_of("missing_duplicate_string"), [0, 1, 0, 1])
    labels = [answer.truth for answer in seen.answers]
    assert labels[0] is None
    for word, truth in zip(([0, 1], [0, 1, 0, 1]), (labels[1], labels[3]), strict=True):
        try:
            want = tasks.get("missing_duplicate_string").label(word)
        except ValueError:
            want = None
        assert truth == want


def test_what_cannot_be_looked_into_is_named() -> None:
    with pytest.raises(ValueError, match="model='lstm': has no tree, expected pr_lstm"):
        inspect(model_of("parity_check", "lstm"), [0])
    with pytest.raises(ValueError, match="expected one with autoregressive=False"):
        inspect(model_of("reverse_string", autoregressive=True), [0, 1])
    with pytest.raises(ValueError, match="the word is empty: expected 1 to 500 tokens"):
        inspect(model_of("parity_check"), [])
    with pytest.raises(ValueError, match="the word has 501 tokens: expected 1 to 500"):
        inspect(model_of("parity_check"), [0] * (MOST + 1))
