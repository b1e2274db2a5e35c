"""A model as a page holds it: what its task is, and its weights as text."""

import base64
from pathlib import Path
from typing import Any

import torch

from prlstm.models.folder import load
from prlstm.models.inspection import MOST
from prlstm.models.model import Model
from prlstm.models.options import TapeOptions

# the tasks whose words `tasks.js` knows
KNOWN = (
    "even_pairs", "modular_arithmetic", "parity_check",
    "cycle_navigation", "missing_duplicate_string", "bucket_sort",
)  # fmt: skip
# prefixes that are answered where each token has an answer: that many take merges of their square
MOST_ANSWERED = 128
# where the weights of a PR-LSTM stand
CELL, READOUT = "network.layer.layers.0.", "network.readout.linear."


def embedded(folder: Path) -> dict[str, Any]:
    """What `model.js` reads; ValueError for a model that it cannot compute."""
    model = load(folder)
    _check(folder, model)
    task = model.task
    # in a fixed order: leaf, composition, refinements, read-out, of each the weight and the bias
    weights = [
        weight for name, weight in model.state_dict().items() if name.startswith((CELL, READOUT))
    ]
    values = torch.cat([weight.to(torch.float32).flatten() for weight in weights])
    return {
        "name": folder.name,
        "task": task.name,
        "title": task.paper_name,
        "symbols": list(task.symbols),
        "answers": list(task.answer_symbols),
        # an answer for every token, or one for the word
        "many": not task.single_output,
        "most": MOST,
        "prefixes": MOST if task.single_output else MOST_ANSWERED,
        "shapes": [list(weight.shape) for weight in weights],
        "weights": base64.b64encode(values.numpy().astype("<f4").tobytes()).decode(),
    }


def _check(folder: Path, model: Model) -> None:
    """Whether the page can run it."""
    options = model.options
    plain = isinstance(options, TapeOptions) and not (options.computation or options.autoregressive)
    if model.name != "pr_lstm" or not plain:
        raise ValueError(
            f"{folder}: the explorer runs pr_lstm with computation=0 and autoregressive=False, "
            f"this is {model.extra_repr()}"
        )
    if model.task.name not in KNOWN:
        raise ValueError(
            f"{folder}: a model for {model.task.name}, expected one for {', '.join(KNOWN)}"
        )
