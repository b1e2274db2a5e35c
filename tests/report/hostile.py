"""Rows whose every text would like to be something else than text."""

import copy
from pathlib import Path
from typing import Any

from prlstm.files import append_rows
from prlstm.report.rows import GRADIENTS, SCALING, SCORES, read_results
from tests.report.made_results import write_results

TEXTS = (
    "<script>window.hit = 1</script>",
    "\"'><img src=x onerror='window.hit = 2'>",
    "</title></desc></svg></style><script>window.hit = 3</script>",
    "{{ 7 * 7 }}{% raw %}&lt;&amp;",
    "a_very_long_name_without_any_place_to_break_" * 60,
    "‮txet eht fo noitcerid\u0000 and more",
)


def write_hostile(folder: Path) -> None:
    """Rows as they should be, and beside them some with such texts wherever there is one."""
    write_results(folder, seeds=1)
    known = {name: read_results(folder / name) for name in (SCORES, SCALING, GRADIENTS)}
    for number, text in enumerate(TEXTS):
        made_with = dict.fromkeys(("device", "torch", "commit", "date", "python"), text)
        made_with |= {"threads": 1, "cuda": None, "prlstm": text}
        score: dict[str, Any] = copy.deepcopy(known[SCORES][0])
        score |= {"run": text, "seed": number, "made_with": made_with}
        other = score | {"setting": {"hidden_size": 8, text: text}, "model": "pr_lstm"}
        stranger = score | {"task": text, "model": text, "setting": {text: [text, None]}}
        failed = score | {"weights": "none", "failed": text, "step": 3, "setting": {}}
        append_rows(folder / SCORES, [score, other, stranger, failed])
        point = known[SCALING][0] | {"label": text, "made_with": made_with, "task": text}
        append_rows(folder / SCALING, [point])
        norms = known[GRADIENTS][0] | {"run": text, "model": text, "made_with": made_with}
        append_rows(folder / GRADIENTS, [norms])
