"""The paper's numbers, to stand beside ours."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

# the hidden size of Table 3's smaller PR-LSTM
SMALL = 137


@cache
def tables() -> dict[str, dict[str, dict[str, float]]]:
    """Tables 2 and 3: by model and task, in percent."""
    contents: dict[str, Any] = json.loads(Path(__file__).with_name("paper.json").read_text())
    return {name: contents[name] for name in ("table2", "table3")}


def source() -> str:
    """Where these numbers stand."""
    contents: dict[str, Any] = json.loads(Path(__file__).with_name("paper.json").read_text())
    return str(contents["source"])


def published(task: str, model: str, options: Mapping[str, Any]) -> float | None:
    """The paper's score of a model on a task, between 0 and 1; None where it has none.

    The closest one: that of the same number of refinements, from Table 2 where it is there.
    """
    percent = tables()["table2"].get(model, {}).get(task)
    if model in ("pr_lstm", "pr_rnn"):
        refine, small = options["refine"], options["hidden_size"] == SMALL
        if model == "pr_rnn" or refine != 1:
            percent = tables()["table3"].get(f"{model}_{refine}R", {}).get(task)
        elif small:
            percent = tables()["table3"]["pr_lstm_137"].get(task)
    return None if percent is None else percent / 100
