"""Files that are never seen half."""

import os
from pathlib import Path


def write_whole(path: Path, contents: bytes) -> None:
    """Write a file beside its name and move it into place.

    A full disk or a kill leaves what was there before.
    """
    beside = path.with_name(f".{path.name}.new")
    try:
        with beside.open("wb") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
