"""Hardware, versions and commit: a number means nothing without them."""

import os
import platform
import re
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import prlstm

# what is measured changes nothing of how
NO_CODE = (":(exclude)results", ":(exclude)benchmarks/results")


def environment(device: torch.device) -> dict[str, Any]:
    """What is written beside every number."""
    cuda = device.type == "cuda"
    return {
        "device": torch.cuda.get_device_name(device) if cuda else _processor(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda if cuda else None,
        "prlstm": prlstm.__version__,
        "commit": _commit(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def place_of(made_with: Mapping[str, Any]) -> tuple[str, int | None]:
    """What times depend on: threads are the processors of a CPU, and tell nothing of a GPU."""
    return made_with["device"], None if made_with["cuda"] else made_with["threads"]


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.MULTILINE)
        if found is not None:
            return found.group(1)
    return platform.processor() or platform.machine()


def _commit() -> str | None:
    """The commit of this code; `PRLSTM_COMMIT` names it where only the files are at hand."""
    if named := os.getenv("PRLSTM_COMMIT"):
        return named
    # an installed package lies in somebody else's repository, if in any
    return commit_of(Path(__file__).parent.parent)


def commit_of(root: Path) -> str | None:
    """The commit of a repository, `-dirty` if its files differ; rows are added while others run."""
    if not (root / ".git").exists():
        return None
    try:
        named = _git(root, "describe", "--always")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no", "--", ".", *NO_CODE)
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{named}-dirty" if changed else named


def _git(root: Path, *arguments: str) -> str:
    command = ["git", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    return done.stdout.strip()
