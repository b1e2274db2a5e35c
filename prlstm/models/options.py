"""Hyper-parameters: frozen, checked, and described where they are declared."""

import dataclasses
import difflib
import math
from dataclasses import dataclass
from types import NoneType
from typing import Any, get_args


def option(
    default: Any, help: str, *, least: float = 1, below: float = math.inf, among: Any = None
) -> Any:
    """A hyper-parameter: its default, what it is, and which values it takes."""
    metadata = {"help": help, "least": least, "below": below, "among": among}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Options:
    """What can be chosen about a model. Every value is checked."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            _check(field, value)
            # 0 and 0.0 are one setting, also where it is written down
            if field.type is float:
                object.__setattr__(self, field.name, float(value))

    @classmethod
    def read(cls, model: str, given: dict[str, Any]) -> "Options":
        """Options by name; an unknown one is an error that shows the closest."""
        known = [field.name for field in dataclasses.fields(cls)]
        # lists come from JSON, and from hands
        given = {name: tuple(v) if isinstance(v, list) else v for name, v in given.items()}
        for name, value in given.items():
            if name not in known:
                close = difflib.get_close_matches(name, known, 1, 0)[0]
                raise ValueError(
                    f"{name}={value!r}: {model} has no such hyper-parameter, "
                    f"did you mean {close!r}? There are: {', '.join(known)}"
                )
        return cls(**given)


@dataclass(frozen=True, kw_only=True)
class TapeOptions(Options):
    """What can be chosen about the tape that a model reads."""

    computation: int = option(0, "Computation cells on the tape for every token.", least=0)
    autoregressive: bool = option(False, "Feed answers back: the next one is read behind them.")


def _check(field: "dataclasses.Field[Any]", value: Any) -> None:
    """One value against the type and the range of its field."""
    kinds = get_args(field.type) if NoneType in get_args(field.type) else (field.type,)
    least, below, among = (field.metadata[key] for key in ("least", "below", "among"))
    if value is None and NoneType in kinds:
        return
    if among is not None:
        fits, expected = value in among, f"one of {', '.join(map(repr, among))}"
    elif bool in kinds:
        fits, expected = isinstance(value, bool), "True or False"
    elif float in kinds:
        fits = isinstance(value, (int, float)) and not isinstance(value, bool)
        fits = fits and least <= value < below
        expected = f"a number with {least:g} <= {field.name} < {below:g}"
    elif int in kinds:
        fits = _is_size(value, least) and value < below
        expected = f"an integer >= {least}" + (f" and < {below:g}" if below < math.inf else "")
    else:
        fits = isinstance(value, tuple) and all(_is_size(size, least) for size in value)
        expected = f"a tuple of integers >= {least}"
    if not fits:
        raise ValueError(f"{field.name}={value!r}: expected {expected}")


def _is_size(value: Any, least: float) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
