"""What a user types, as values; or an error that says what was expected."""

import difflib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import torch
import typer

from prlstm.experiments.memory import ran_out_of_memory, said
from prlstm.models.folder import folder_of
from prlstm.models.shipping import shipped
from prlstm.training import RunFolder
from prlstm.training.results import find_runs

Found = TypeVar("Found")

# where runs are kept unless told otherwise
ROOT = Path("runs")
INTERRUPTED = 130
# greater lengths, and more seeds, are a slip of the hand
MOST, MOST_SEEDS, MOST_AT_ONCE = 100_000_000, 10_000, 100_000


@contextmanager
def told() -> Iterator[None]:
    """Say what went wrong in a line, and end with an exit code that is not zero."""
    try:
        yield
    except (typer.Exit, typer.Abort, BrokenPipeError):
        # where the reader has gone, nobody is left to be told
        raise
    except OSError as failed:
        _end(f"{failed.filename}: {failed.strerror}" if failed.filename else str(failed))
    except (ValueError, TypeError, FloatingPointError, ModuleNotFoundError) as failed:
        _end(str(failed))
    except (MemoryError, RuntimeError) as failed:
        if not ran_out_of_memory(failed):
            raise
        _end(said(failed))


@contextmanager
def typed() -> Iterator[None]:
    """A value that is none of those expected was typed wrongly."""
    try:
        yield
    except ValueError as wrong:
        raise typer.BadParameter(str(wrong)) from None


def say_error(message: str) -> None:
    """An error on a terminal; what would steer it is shown, not sent."""
    typer.secho("Error: ", fg="red", nl=False, err=True)
    shown = (c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in message)
    typer.echo("".join(shown), err=True)


def _end(message: str) -> None:
    say_error(message)
    raise typer.Exit(1)


def named(get: Callable[[str], Found], name: str, given_as: str) -> Found:
    """What a user named, or the reason why there is no such thing."""
    try:
        return get(name)
    except ValueError as unknown:
        raise typer.BadParameter(str(unknown), param_hint=given_as) from None


def read_numbers(
    text: str,
    given_as: str,
    least: int,
    most: int = MOST,
    example: str = "41:500 or 1000,10000",
) -> list[int]:
    """Numbers as `41:500` (both ends count), `1000,10000`, or both together."""
    numbers: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*([0-9]+)\s*(?::\s*([0-9]+)\s*)?", part)
        if not found and not part.strip():
            continue
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, -1)
        if not least <= first <= last <= most:
            raise typer.BadParameter(
                f"{text!r:.40}: expected numbers from {least} to {most:,}, as in {example}",
                param_hint=given_as,
            )
        if last - first >= MOST_AT_ONCE:
            raise typer.BadParameter(
                f"{text!r:.40}: expected at most {MOST_AT_ONCE:,} of them", param_hint=given_as
            )
        numbers += range(first, last + 1)
    if not numbers:
        raise typer.BadParameter(f"{text!r}: expected at least one number", param_hint=given_as)
    return sorted(set(numbers))


def read_seeds(text: str) -> list[int]:
    """`10` are the seeds 0 to 9; `3,4,5`, `7,` and `3:5` are those."""
    if not re.fullmatch(r"\s*[0-9]+\s*", text):
        return read_numbers(text, "--seeds", 0, 10**12, "3,4,5 or 3:5, or how many as in 10")
    if not 1 <= int(text) <= MOST_SEEDS:
        raise typer.BadParameter(
            f"{text!r:.40}: expected how many seeds, from 1 to {MOST_SEEDS:,}, "
            "or which, as in 3,4,5",
            param_hint="--seeds",
        )
    return list(range(int(text)))


def read_device(name: str) -> torch.device:
    """A device; `auto` is a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise typer.BadParameter(
            f"{name!r}: expected auto, cpu, cuda or cuda:N", param_hint="--device"
        )
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise typer.BadParameter(
            f"{name!r}: PyTorch finds {torch.cuda.device_count()} CUDA devices here",
            param_hint="--device",
        )
    return device


def read_run(text: str, root: Path) -> RunFolder:
    """The run in a folder, or of a name below `root`."""
    return RunFolder.open(find_folder(text, root))


def find_model(text: str, root: Path) -> Path:
    """The folder of a model: a run's, or that of one that comes with the package."""
    if not (root / text).is_dir() and (path := folder_of(text)) != Path(text):
        return path
    try:
        return find_folder(text, root)
    except FileNotFoundError as missing:
        if close := difflib.get_close_matches(text, shipped(), 1):
            raise FileNotFoundError(f"{text!r}: no such model, did you mean {close[0]}?") from None
        known = ", ".join(shipped())
        raise FileNotFoundError(f"{missing}; with the package come {known}") from None


def find_folder(text: str, root: Path) -> Path:
    """A folder, or that of a name below `root`; the beginning of a name will do."""
    if (path := Path(text)).is_dir() or (path := root / text).is_dir():
        # a run is trained where it is, whatever leads there
        return path.resolve() if path.is_symlink() or path.name in ("", "..") else path
    found = [path for path in find_runs(root) if path.name.startswith(text)]
    if len(found) == 1:
        return found[0]
    if not found:
        known = [path.name for path in find_runs(root)]
        close = difflib.get_close_matches(text, known, 1)
        hint = f", did you mean {close[0]}?" if close else "; `prlstm runs` lists them"
        raise FileNotFoundError(
            f"{text!r}: no such folder, and no run in {root} begins like that{hint}"
        )
    names = ", ".join([*(path.name for path in found[:5]), *["..."] * (len(found) > 5)])
    raise ValueError(f"{text!r}: {len(found)} runs in {root} begin like that: {names}")
