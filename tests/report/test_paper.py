"""The paper's numbers stand where they belong."""

import pytest

from prlstm import models, tasks
from prlstm.report.paper import published, tables


@pytest.mark.parametrize(
    ("task", "model", "options", "score"),
    [
        ("parity_check", "pr_lstm", {}, 1.0),
        ("modular_arithmetic", "pr_lstm", {}, 0.997),
        ("modular_arithmetic", "pr_lstm", {"hidden_size": 64}, 0.997),
        ("modular_arithmetic", "pr_lstm", {"hidden_size": 137}, 0.983),
        ("cycle_navigation", "pr_lstm", {"refine": 0}, 0.484),
        ("cycle_navigation", "pr_lstm", {"refine": 2}, 1.0),
        ("cycle_navigation", "pr_lstm", {"refine": 3}, None),
        ("bucket_sort", "pr_rnn", {}, 0.687),
        ("bucket_sort", "pr_rnn", {"refine": 0}, 0.298),
        ("bucket_sort", "lstm", {}, 0.993),
        ("missing_duplicate_string", "tape_rnn", {}, 1.0),
        ("even_pairs", "transformer_encoder", {}, 0.964),
        ("even_pairs", "gru", {}, None),
        ("even_pairs", "transformer", {}, None),
    ],
)
def test_the_closest_number(
    task: str, model: str, options: dict[str, int], score: float | None
) -> None:
    whole = vars(models.kind(model).options(**options))
    assert published(task, model, whole) == (None if score is None else pytest.approx(score))


def test_all_tasks_are_there() -> None:
    for table in tables().values():
        for scores in table.values():
            assert list(scores) == tasks.names()
            assert all(0 <= score <= 100 for score in scores.values())
