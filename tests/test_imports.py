"""Which part of the package may import which, and what an import costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "prlstm"
# every unit, and the units that it may import
ALLOWED: dict[str, set[str]] = {
    "tree": set(),
    "tasks": set(),
    "cells": {"tree"},
    "kernels": {"tree"},
    "dispatch": {"tree", "cells", "kernels", "lengths"},
    "lengths": set(),
    "inputs": {"tree", "cells", "lengths"},
    "state": {"tree", "lengths"},
    "state_shape": {"tree", "cells", "state"},
    "direction": {"tree", "lengths", "dispatch"},
    "long": {"tree", "lengths", "inputs", "state"},
    "step": {"tree", "lengths", "state", "dispatch"},
    "layer": {
        "tree",
        "cells",
        "lengths",
        "inputs",
        "state",
        "state_shape",
        "direction",
        "dispatch",
        "long",
        "step",
    },
    "streams": {
        "tree",
        "cells",
        "kernels",
        "lengths",
        "inputs",
        "state",
        "state_shape",
        "dispatch",
        "layer",
    },
    "stream": {"kernels"},
    "files": set(),
    "models": {
        "prlstm",
        "files",
        "stream",
        "tasks",
        "tree",
        "cells",
        "kernels",
        "dispatch",
        "state",
        "layer",
    },
    "environment": {"prlstm"},
    "training": {
        "prlstm",
        "environment",
        "files",
        "stream",
        "tasks",
        "kernels",
        "models",
        "evaluation",
    },
    "evaluation": {"prlstm", "stream", "tasks", "models"},
    "report": {"prlstm", "files", "tree", "tasks", "models"},
    "experiments": {
        "prlstm",
        "environment",
        "files",
        "tree",
        "tasks",
        "cells",
        "kernels",
        "dispatch",
        "layer",
        "models",
        "evaluation",
        "training",
        "report",
    },
    "distributed": {
        "tree",
        "cells",
        "lengths",
        "inputs",
        "state",
        "state_shape",
        "dispatch",
        "layer",
        # a cluster makes cells of tables
        "prlstm",
        "files",
        "training",
        "experiments",
    },
    "cli": {
        "prlstm",
        "environment",
        "files",
        "tree",
        "tasks",
        "models",
        "evaluation",
        "training",
        "report",
        "experiments",
        "distributed",
    },
    "__init__": {"prlstm", "tree", "cells", "state", "layer", "streams", "models"},
    "__main__": {"cli"},
}


def unit_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def units_imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [node.module or ""]
        else:
            continue
        mine = [name.split(".") for name in names if name.split(".")[0] == "prlstm"]
        found |= {parts[1] if len(parts) > 1 else "prlstm" for parts in mine}
    return found


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=str)
def test_imports_go_one_way(path: Path) -> None:
    unit = unit_of(path)
    assert unit in ALLOWED, f"say in ALLOWED what {unit} may import"
    assert units_imported(path) <= ALLOWED[unit] | {unit}


def test_ray_is_imported_when_it_is_asked_for_alone() -> None:
    code = """
import sys, prlstm.cli, prlstm.distributed.cluster
from prlstm.cli.engine import EngineAsked
with EngineAsked("local", None, None, None, 1, "cpu").started():
    assert "ray" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_importing_is_cheap_and_needs_no_gpu_packages() -> None:
    code = """
import sys, time, torch
before, start = set(sys.modules), time.perf_counter()
import prlstm
seconds, new = time.perf_counter() - start, {m.split(".")[0] for m in set(sys.modules) - before}
assert seconds < 1, f"{seconds:.2f} s"
assert not new & {"triton", "typer", "rich", "matplotlib", "numpy"}, new
assert not torch.cuda.is_initialized()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
