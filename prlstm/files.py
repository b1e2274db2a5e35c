"""Files that are never seen half, and rows that are only ever added.

Nothing is written through a symbolic link: a folder may come from somebody else.
"""

import fcntl
import json
import os
import stat
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def write_whole(path: Path, contents: bytes) -> None:
    """Write a file beside its name and move it into place.

    A full disk or a kill leaves what was there before.
    """
    beside = path.with_name(f".{path.name}.new")
    try:
        with _opened(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as failed:
        with suppress(OSError):
            beside.unlink()
        # what was to be written, which a full disk does not name
        raise OSError(failed.errno, failed.strerror, str(path)) from None


def append_rows(
    path: Path, rows: Iterable[Row], identity: Callable[[Row], Hashable] | None = None
) -> None:
    """Add rows to a file of JSON lines, in place of one that was cut off.

    With an `identity`, a row is left out if the file holds one of the same identity.
    """
    lines = [(row, json.dumps(row, allow_nan=False) + "\n") for row in rows]
    try:
        with _opened(path, os.O_RDWR | os.O_CREAT) as file:
            # several processes may score one run
            fcntl.flock(file, fcntl.LOCK_EX)
            contents = file.read()
            end = _end_of_rows(contents)
            if identity is not None:
                known = {identity(row) for row in _parsed(path, contents[:end])}
                lines = [(row, line) for row, line in lines if identity(row) not in known]
            file.seek(end)
            file.truncate()
            file.write("".join(line for _, line in lines).encode())
    except OSError as failed:
        raise OSError(failed.errno, failed.strerror, str(path)) from None


def read_rows(path: Path) -> list[Row]:
    """The rows of a file of JSON lines; the last one does not count if it was cut off."""
    if not path.exists():
        return []
    contents = _read(path)
    return _parsed(path, contents[: _end_of_rows(contents)])


def _parsed(path: Path, whole: bytes) -> list[Row]:
    rows = []
    for number, line in enumerate(whole.split(b"\n")[:-1], 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            shown = line.decode(errors="replace")
            raise ValueError(f"{path}, line {number}: not a row ({shown!r:.60})")
        rows.append(row)
    return rows


def read_object(path: Path) -> Row:
    """The object that a JSON file holds."""
    try:
        contents = json.loads(_read(path))
    except (ValueError, RecursionError) as wrong:
        raise ValueError(f"{path}: not JSON ({wrong})") from None
    if not isinstance(contents, dict):
        raise ValueError(f"{path}: expected an object")
    return contents


def _end_of_rows(contents: bytes) -> int:
    """Behind the last end of a line there is nothing, or a row that was cut off."""
    return contents.rfind(b"\n") + 1


def _read(path: Path) -> bytes:
    """The bytes of a file: not those of a device or a pipe, which may have no end."""
    # without waiting for somebody at the other end of a pipe
    with _opened(path, os.O_RDONLY | os.O_NONBLOCK) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError(f"{path}: expected a file")
        contents: bytes = file.read()
        return contents


def _opened(path: Path, how: int) -> Any:
    """A file for bytes, but not one that a link leads to."""
    mode = {os.O_RDONLY: "rb", os.O_WRONLY: "wb", os.O_RDWR: "r+b"}[how & os.O_ACCMODE]
    return os.fdopen(os.open(path, how | os.O_NOFOLLOW, 0o666), mode)
