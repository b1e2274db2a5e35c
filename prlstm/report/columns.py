"""The columns of the paper's tables: which model, with which settings that are not as usual."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from prlstm.files import Row
from prlstm.report.paper import SMALL

# of all settings this one alone may differ within a column: it is told beside the numbers
PRECISION, USUAL_PRECISION = "precision", "float32"


@dataclass(frozen=True)
class Column:
    """A model in a table; `setting` are its settings that are not as usual, by name.

    Unless it names one, a column holds runs of any precision.
    """

    name: str
    title: str
    model: str
    setting: Mapping[str, Any] = field(default_factory=dict)
    precision: str | None = None

    def fits(self, row: Row) -> bool:
        """Whether a row of scores is of this column."""
        own = {name: value for name, value in row["setting"].items() if name != PRECISION}
        if self.precision not in (None, precision_of(row)):
            return False
        return bool(row["model"] == self.model and _as_read(own) == _as_read(self.setting))

    def with_settings(self, more: Mapping[str, Any]) -> "Column":
        """The same model with other settings as well."""
        return replace(self, setting={**self.setting, **more})


def _as_read(setting: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as a file of rows gives them back: sizes are a list there."""
    return {n: list(value) if isinstance(value, tuple) else value for n, value in setting.items()}


def precision_of(row: Row) -> str:
    """In which a run was computed."""
    return str(row["setting"].get(PRECISION, USUAL_PRECISION))


def _refined(model: str, title: str, refine: int) -> Column:
    setting = {} if refine == 1 else {"refine": refine}
    return Column(f"{model}_{refine}R", f"{title} {refine}R", model, setting)


TABLE2 = (
    Column("rnn", "RNN", "rnn"),
    Column("stack_rnn", "Stack-RNN", "stack_rnn"),
    Column("tape_rnn", "Tape-RNN", "tape_rnn"),
    Column("transformer_encoder", "Transformer", "transformer_encoder"),
    Column("lstm", "LSTM", "lstm"),
    Column("pr_lstm", "PR-LSTM", "pr_lstm"),
)
TABLE3 = (
    Column("pr_lstm_137", f"PR-LSTM {SMALL}", "pr_lstm", {"hidden_size": SMALL}),
    *(_refined("pr_lstm", "PR-LSTM", refine) for refine in range(3)),
    *(_refined("pr_rnn", "PR-RNN", refine) for refine in range(3)),
)
FIGURE3 = tuple(
    column
    for name in ("pr_lstm", "lstm", "transformer_encoder")
    for column in TABLE2
    if column.name == name
)
