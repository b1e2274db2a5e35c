"""Options of the models as options of a command."""

import dataclasses
import inspect
from collections.abc import Callable
from types import NoneType
from typing import Annotated, Any, get_args

import typer

from prlstm.models import MODELS

PANEL = "Options of the model"


def with_model_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes the options of every model as well: those that were given, by name."""
    signature = inspect.signature(command, eval_str=True)
    own = {name: p for name, p in signature.parameters.items() if p.kind is not p.VAR_KEYWORD}
    added = {
        name: inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
        )
        for name, annotation in _annotations().items()
    }

    def called(**values: Any) -> None:
        given = {name: values.pop(name) for name in added}
        options = {name: _value(name, value) for name, value in given.items() if value is not None}
        command(**values, model_options=options)

    del own["model_options"]
    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__signature__ = signature.replace(parameters=[*own.values(), *added.values()])  # type: ignore[attr-defined]
    called.__annotations__ = {
        name: parameter.annotation for name, parameter in (own | added).items()
    } | {"return": None}
    return called


def flag(name: str) -> str:
    """How an option is typed."""
    return f"--{name.replace('_', '-')}"


def _fields() -> dict[str, dict[str, "dataclasses.Field[Any]"]]:
    """All options, and of which models they are."""
    found: dict[str, dict[str, dataclasses.Field[Any]]] = {}
    for model, kind in MODELS.items():
        for field in dataclasses.fields(kind.options):
            found.setdefault(field.name, {})[model] = field
    return found


def _annotations() -> dict[str, Any]:
    annotations = {}
    for name, by_model in _fields().items():
        field = next(iter(by_model.values()))
        typed = _typed(field)
        option = typer.Option(
            flag(name),
            help=_help(by_model),
            rich_help_panel=PANEL,
            metavar="A,B" if _is_sizes(field) else "NAME" if typed is str else None,
            show_default=False,
        )
        annotations[name] = Annotated[typed | None, option]
    return annotations


def _typed(field: "dataclasses.Field[Any]") -> Any:
    """As which type an option is typed: sizes as text."""
    kinds = [kind for kind in get_args(field.type) or [field.type] if kind is not NoneType]
    return kinds[0] if kinds[0] in (bool, int, float, str) and not _is_sizes(field) else str


def _is_sizes(field: "dataclasses.Field[Any]") -> bool:
    return isinstance(field.default, tuple)


def _help(by_model: dict[str, "dataclasses.Field[Any]"]) -> str:
    """What it is, and for which models; the default where it is not the same for all."""
    shared = next(iter(by_model.values()))
    of = "all models" if len(by_model) == len(MODELS) else ", ".join(by_model)
    default = shared.default
    if isinstance(default, tuple):
        default = ",".join(map(str, default))
    shown = "" if default is None or isinstance(default, bool) else f"; default {default}"
    among = shared.metadata["among"]
    choices = f" One of {', '.join(among)}." if among else ""
    return f"{shared.metadata['help']}{choices} ({of}{shown})"


def _value(name: str, value: Any) -> Any:
    """A value as a model takes it."""
    if not _is_sizes(next(iter(_fields()[name].values()))):
        return value
    try:
        return tuple(int(part) for part in value.split(",") if part.strip())
    except ValueError:
        raise typer.BadParameter(
            f"{value!r}: expected sizes as in 64,64", param_hint=flag(name)
        ) from None
