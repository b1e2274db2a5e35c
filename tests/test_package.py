"""The package as others get it: wheel and sdist, installed into a fresh environment."""

import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import prlstm

ROOT = Path(__file__).parent.parent


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return folder


def test_wheel_and_sdist_hold_the_package(built: Path) -> None:
    name = f"prlstm-{prlstm.__version__}"
    wheel = zipfile.ZipFile(built / f"{name}-py3-none-any.whl").namelist()
    assert {"prlstm/py.typed", "prlstm/layer.py", "prlstm/tree/scan.py"} <= set(wheel)
    # what is no code: the report, its explorer
    for folder in ("page/templates", "explorer"):
        source = ROOT / "prlstm" / "report" / folder
        there = {file for file in wheel if file.startswith(f"prlstm/report/{folder}/")}
        assert {f"prlstm/report/{folder}/{path.name}" for path in source.glob("*.*")} <= there
    assert all(file.startswith(("prlstm/", f"{name}.dist-info/")) for file in wheel)
    with tarfile.open(built / f"{name}.tar.gz") as sdist:
        files = {Path(file).relative_to(name).as_posix() for file in sdist.getnames()}
    assert {"prlstm/layer.py", "README.md", "LICENSE", "pyproject.toml"} <= files
    assert not any(file.startswith(("benchmarks/results", ".venv")) for file in files)


def test_wheel_installs_into_a_fresh_environment(built: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "fresh", with_pip=False)
    python = tmp_path / "fresh" / "bin" / "python"
    (wheel,) = built.glob("*.whl")
    run(
        sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", wheel, cwd=tmp_path
    )
    # the dependencies are borrowed: a path line does not run the .pth files that it leads to,
    # so the development install of this package stays out of sight
    paths = sysconfig.get_paths(vars={"base": str(tmp_path / "fresh")})
    Path(paths["purelib"], "borrowed.pth").write_text(sysconfig.get_paths()["purelib"])
    code = "import prlstm; print(prlstm.__file__, prlstm.__version__, prlstm.PRLSTM(2, 3))"
    said = run(python, "-c", code, cwd=tmp_path)
    assert str(tmp_path) in said
    assert f" {prlstm.__version__} PRLSTM(" in said
    # with the weights of the models that come with it
    command = tmp_path / "fresh" / "bin" / "prlstm"
    seen = run(command, "inspect", "parity_check", "0110", cwd=tmp_path)
    assert [line.split()[1::2] for line in seen.splitlines()[-4:]] == [
        ["0", "right"], ["1", "right"], ["0", "right"], ["0", "right"],
    ]  # fmt: skip


@pytest.mark.slow
def test_wheel_installs_with_its_dependencies(built: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "fresh", with_pip=True)
    python = tmp_path / "fresh" / "bin" / "python"
    (wheel,) = built.glob("*.whl")
    pins = ROOT / "constraints.txt"
    run(python, "-m", "pip", "install", "--quiet", "--constraint", pins, wheel, cwd=tmp_path)
    assert run(python, "-W", "error", "-c", "import prlstm", cwd=tmp_path) == ""


def test_constraints_pin_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if not line.startswith("#"):
            name, _, version = line.partition("==")
            pinned[name.lower().replace("_", "-")] = version
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *(one for extra in extras.values() for one in extra)]
    # the package itself stands for some of its extras
    names = [name for one in asked if not (name := one.split(">=")[0]).startswith("prlstm[")]
    assert all(pinned.get(name) for name in names)
    assert pinned["torch"] == "2.13.0"
