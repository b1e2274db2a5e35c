"""Figure 4: the curves of a model are one function; points are measured once, and ends marked."""

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from torch import Tensor
from typer.testing import CliRunner

from prlstm import models
from prlstm.cli.reproduce.figure4 import figure4
from prlstm.environment import environment
from prlstm.experiments import scaling
from prlstm.experiments.scaling import LEAST, Progress, Request, measure, measure_curves
from prlstm.experiments.scaling_curves import CURVES, Curve, as_it_is, usual_curves, usual_lengths
from prlstm.files import Row
from prlstm.models.model import Model
from prlstm.report.rows import SCALING, append_results, read_results
from tests.cli.command import in_a_line
from tests.compare import assert_rel

CPU = torch.device("cpu")
TINY = Request(batch=2, batches=2, hidden_size=4, stop_ms=1e5)
ANSWERS = torch.zeros(2, 1, 2)


@pytest.fixture(autouse=True)
def _in_a_moment(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where memory is not looked at, none is collected: all that pytest holds takes its time."""
    if request.node.get_closest_marker("gpu") is None and "peak" not in request.node.name:
        monkeypatch.setattr(scaling, "_release", lambda device: None)


def nothing(_: object) -> None:
    """Where nobody listens."""


def curve(act: Callable[[Tensor], object], name: str = "own") -> Curve:
    """A curve that does something with the words."""

    def program(_: Model) -> Callable[[Tensor], Tensor]:
        def answer(words: Tensor) -> Tensor:
            act(words)
            return ANSWERS

        return answer

    return Curve(name, name, "pr_lstm", program)


def points(path: Path) -> list[tuple[str, int, str]]:
    return [(row["curve"], row["length"], row["end"]) for row in read_results(path)]


@pytest.mark.parametrize("model", ["pr_lstm", "lstm", "transformer_encoder"])
@pytest.mark.parametrize("length", [1, 2, 7, 40])
def test_the_curves_of_a_model_are_one_function(model: str, length: int) -> None:
    words = torch.randint(2, (5, length), dtype=torch.uint8)
    sizes = Request(hidden_size=16).sizes(model)

    def logits(way: Callable[[Model], Callable[[Tensor], Tensor]], seed: int = 3) -> Tensor:
        made = models.build(model, "parity_check", seed=seed, dtype=torch.float64, **sizes).eval()
        with torch.no_grad():
            return way(made)(words)

    want = logits(as_it_is)
    assert want.shape == (5, 1, 2)
    ways = [one for one in CURVES.values() if one.model == model]
    assert len(ways) >= 2
    for one in ways:
        assert_rel(one.name, logits(one.program), want, 1e-10)
    assert not torch.allclose(logits(as_it_is, seed=4), want)


def test_op_by_op_is_not_fused() -> None:
    for name in ("lstm", "transformer_encoder"):
        model = models.build(name, "parity_check")
        assert CURVES[f"{name}_op_by_op"].program(model) is model
        fused = [module.fused for module in model.modules() if hasattr(module, "fused")]
        assert fused
        assert not any(fused)


def test_what_is_usual() -> None:
    cuda = torch.device("cuda")
    assert usual_curves(cuda) == list(CURVES.values())
    assert {one.model for one in usual_curves(CPU)} == {"pr_lstm", "lstm", "transformer_encoder"}
    assert not any(one.cuda_only for one in usual_curves(CPU))
    for device in (CPU, cuda):
        lengths = usual_lengths(device)
        assert lengths == sorted(set(lengths))
        assert {1, 5, 10, 25, 50, 100, 2500, 4096, 1 << 20} <= set(lengths)


def test_a_row() -> None:
    said: list[int] = []
    row = measure(CURVES["lstm"], 3, TINY, CPU, said.append)
    assert (row["curve"], row["length"], row["end"], row["how"]) == ("lstm", 3, "", "called")
    assert (row["batches"], row["precision"], said) == (2, "float32", [1, 2])
    low, high = row["ms_quartiles"]
    assert 0 < low <= row["ms_median"] <= high
    assert low <= row["ms_mean"] <= high
    # a Transformer keeps its own width
    assert row["hidden_size"] == 4
    assert measure(CURVES["transformer_encoder"], 3, TINY, CPU, nothing)["hidden_size"] is None


def test_two_batches_warm_up() -> None:
    called: list[Tensor] = []
    row = measure(curve(called.append), 3, TINY, CPU, nothing)
    assert (row["batches"], len(called)) == (2, 2 + 2)


@pytest.mark.parametrize("stop", [1, 3, 11, 20])
def test_stopped_and_continued(tmp_path: Path, stop: int) -> None:
    chosen, path = [CURVES[name] for name in ("pr_lstm", "lstm", "lstm_op_by_op")], tmp_path / "a"
    heard: list[Progress] = []

    def report(at: Progress) -> None:
        heard.append(at)
        if len(heard) == stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_curves(chosen, [4, 1, 2], TINY, path, CPU, report)
    before = read_results(path)
    assert len(before) == sum(at.row is not None for at in heard)
    measure_curves(chosen, [4, 1, 2], TINY, path, CPU, report)
    # each point once, those of a curve going up, and what was there as it was
    assert points(path) == [(one.name, length, "") for one in chosen for length in (1, 2, 4)]
    assert read_results(path)[: len(before)] == before
    # nothing is left to do
    count = len(heard)
    measure_curves(chosen, [1, 2, 4], TINY, path, CPU, report)
    assert len(heard) == count


def test_what_is_told(tmp_path: Path) -> None:
    heard: list[Progress] = []
    some = [CURVES["lstm"], CURVES["lstm_op_by_op"]]
    measure_curves(some, [1, 2], TINY, tmp_path / "a", CPU, heard.append)
    done = [at for at in heard if at.row is not None]
    assert [(at.done, at.left) for at in done] == [(1, 3), (2, 2), (3, 1), (4, 0)]
    assert [at.batches for at in heard] == [1, 2, 2] * 4


def test_too_slow_is_the_end(tmp_path: Path) -> None:
    slow, path, heard = replace(TINY, stop_ms=1e-6), tmp_path / "a", []  # type: ignore[var-annotated]
    some = [CURVES["lstm"], CURVES["pr_lstm"]]
    measure_curves(some, [1, 2], slow, path, CPU, heard.append)
    assert points(path) == [("lstm", 1, "time"), ("pr_lstm", 1, "time")]
    assert [(at.done, at.left) for at in heard if at.row] == [(1, 2), (2, 0)]
    # no mean could come below the limit any more
    assert [row["batches"] for row in read_results(path)] == [1, 1]
    measure_curves(some, [1, 2, 3], slow, path, CPU, pytest.fail)
    # another limit is another curve
    measure_curves(some, [1], TINY, path, CPU, nothing)
    assert points(path)[2:] == [("lstm", 1, ""), ("pr_lstm", 1, "")]


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to\nallocate"), "memory"),
        (MemoryError(), "memory"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "memory"),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), "memory"),
        (RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"), "refused"),
    ],
)
def test_an_error_of_the_device_is_a_marked_row(tmp_path: Path, error: Exception, end: str) -> None:
    def act(words: Tensor) -> None:
        if words.shape[1] >= 3:
            raise error

    path, some = tmp_path / "a", [curve(act), CURVES["lstm"]]
    measure_curves(some, [1, 2, 3, 4], TINY, path, CPU, nothing)
    whole = [("own", 1, ""), ("own", 2, ""), ("own", 3, end)]
    whole += [("lstm", length, "") for length in (1, 2, 3, 4)]
    assert points(path) == whole
    row = read_results(path)[2]
    assert (row["ms_mean"], row["peak_bytes"], row["batches"]) == (None, None, 0)
    assert row["note"] == str(error).partition("\n")[0]
    measure_curves(some, [1, 2, 3, 4, 5], replace(TINY, batches=1), path, CPU, nothing)
    assert points(path) == [*whole, ("lstm", 5, "")]


def test_a_curve_ends_by_the_mean() -> None:
    """One slow batch counts, however fast the others are."""
    calls = itertools.count()

    def act(words: Tensor) -> None:
        if next(calls) == 4:
            time.sleep(2.0)

    request = replace(TINY, batches=5, stop_ms=300.0)
    row = measure(curve(act), 1, request, CPU, nothing)
    assert row["ms_median"] < 300 < row["ms_mean"]
    assert row["end"] == "time"


def test_another_error_is_one() -> None:
    def act(words: Tensor) -> None:
        raise RuntimeError("a mistake")

    with pytest.raises(RuntimeError, match="a mistake"):
        measure(curve(act), 1, TINY, CPU, nothing)


def test_memory_runs_out_on_a_cpu() -> None:
    row = measure(CURVES["pr_lstm"], 1 << 48, TINY, CPU, nothing)
    assert row["end"] == "memory"
    assert "allocate" in row["note"]


@pytest.mark.skipif(not scaling.CLEAR.exists(), reason="only Linux knows the peak of a process")
def test_the_peak_of_each_point_is_its_own() -> None:
    size = 1 << 26

    def act(words: Tensor) -> Tensor:
        return torch.ones(size if words.shape[1] == 2 else 1, dtype=torch.uint8)

    peaks = [measure(curve(act), n, TINY, CPU, nothing)["peak_bytes"] for n in (1, 2, 1)]
    # the kernel counts pages some at a time
    assert peaks[1] > 0.9 * size
    assert max(peaks[0], peaks[2]) < size / 2


def test_a_point_takes_no_longer_than_asked() -> None:
    short = replace(TINY, batches=100, seconds=1e-9)
    assert measure(CURVES["lstm"], 1, short, CPU, nothing)["batches"] == LEAST
    # a mean of fewer is no reason to make more
    assert measure(CURVES["lstm"], 1, replace(short, batches=2), CPU, nothing)["batches"] == 2


def test_which_rows_answer() -> None:
    one, many = CURVES["lstm"], Request(batches=10)
    row: Row = {
        "curve": "lstm", "model": "lstm", "task": "parity_check", "length": 2, "batch": 1024,
        "hidden_size": 256, "stop_ms": 500.0, "seconds": 1.0, "batches": 5, "ms_mean": 2.0,
        "end": "",
    }  # fmt: skip

    def left(request: Request, **more: Any) -> list[int]:
        return request.open_lengths(one, [3, 2, 1, 3], [row | more])

    assert left(many) == [1, 2, 3]
    assert left(many, batches=10) == [1, 3]
    assert left(replace(many, batches=5)) == [1, 3]
    # cut as short as is asked for now, or less short
    assert left(replace(many, seconds=1.0)) == left(replace(many, seconds=0.5)) == [1, 3]
    assert left(replace(many, seconds=2.0)) == [1, 2, 3]
    for name, value in {"batch": 1, "hidden_size": 4, "stop_ms": 1.0, "curve": "gru"}.items():
        assert left(many, batches=10, **{name: value}) == [1, 2, 3]
    # marked: nothing is measured behind it
    assert left(many, end="memory", batches=0, ms_mean=None) == [1]
    assert left(many, end="time", ms_mean=1000.0) == [1]
    assert left(many, end="time", ms_mean=501.0) == [1, 2, 3]


def test_rows_of_another_device_answer_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a"
    measure_curves([CURVES["lstm"]], [1], TINY, path, CPU, nothing)
    (row,) = read_results(path)
    assert row["made_with"]["device"] == environment(CPU)["device"]
    append_results(path, [row | {"length": 2, "made_with": row["made_with"] | {"device": "x"}}])
    measure_curves([CURVES["lstm"]], [1, 2], TINY, path, CPU, nothing)
    assert points(path) == [("lstm", length, "") for length in (1, 2, 2)]


@pytest.mark.parametrize(
    "wrong",
    [{"batch": 0}, {"batches": 0}, {"hidden_size": True}, {"seconds": 0}, {"stop_ms": -1.0}],
)
def test_wrong_requests(wrong: dict[str, Any]) -> None:
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=f"{name}={value}: expected "):
        Request(**wrong)


# a figure in a moment
SMALL = ("--batch", "2", "--batches", "2", "--hidden-size", "4", "--device", "cpu")


def command(*arguments: str | Path, code: int = 0) -> str:
    app = typer.Typer()
    app.command()(figure4)
    given = [*SMALL, *map(str, arguments)]
    result = CliRunner().invoke(app, given, env={"COLUMNS": "120", "TERM": "dumb"})
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def test_the_command(tmp_path: Path) -> None:
    some = ("--curves", "lstm, pr_lstm", "--lengths", "1,3", "--out", tmp_path / "new")
    said = command(*some)
    stem = "figure4-batch-2-hidden_size-4"
    names = [SCALING, *(f"{stem}.{ending}" for ending in ("csv", "tex", "svg", "png"))]
    assert said.split()[-5:] == [str(tmp_path / "new" / name) for name in names]
    assert "PR-LSTM, length 3: " in said
    assert f"Milliseconds on {environment(CPU)['device']}:" in said
    path = tmp_path / "new" / SCALING
    assert points(path) == [(name, n, "") for name in ("pr_lstm", "lstm") for n in (1, 3)]
    # again: nothing is measured, the figure is the same
    before = {name: (tmp_path / "new" / name).read_bytes() for name in names}
    assert ", length " not in command(*some)
    assert {name: (tmp_path / "new" / name).read_bytes() for name in names} == before
    # rows of another device have a figure of their own
    (row, *_) = read_results(path)
    append_results(path, [row | {"made_with": row["made_with"] | {"device": "GPU (1)"}}])
    assert f"{stem}-gpu-1.csv" in command(*some)
    # nor does a trial take the place of another
    assert f"{stem}-stop_ms-0.001.csv" in command(*some, "--stop-ms", "0.001")


def test_an_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = scaling.append_results

    def then_stop(path: Path, rows: list[Row]) -> None:
        usual(path, rows)
        raise KeyboardInterrupt

    monkeypatch.setattr(scaling, "append_results", then_stop)
    some = ("--curves", "lstm", "--lengths", "1:2", "--out", tmp_path)
    said = in_a_line(command(*some, code=130))
    assert f"All points so far are in {tmp_path / SCALING}; the same command goes on." in said
    assert points(tmp_path / SCALING) == [("lstm", 1, "")]
    monkeypatch.undo()
    command(*some)
    assert points(tmp_path / SCALING) == [("lstm", 1, ""), ("lstm", 2, "")]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--curves", "lstn"], "no such curve, did you mean 'lstm'?"),
        (["--curves", "lstm,"], "no such curve"),
        (["--curves", "pr_lstm_called"], "'pr_lstm_called': expected a CUDA device, got cpu"),
        (["--lengths", "0"], "expected numbers from 1 to"),
        (["--batch", "0"], "batch=0: expected an integer >= 1"),
        (["--seconds", "nan"], "seconds=nan: expected a finite number > 0"),
    ],
)
def test_wrong_use(tmp_path: Path, given: list[str], said: str) -> None:
    assert said in in_a_line(command(*given, "--out", tmp_path, code=2))
    assert not list(tmp_path.iterdir())


def test_rows_of_another_version(tmp_path: Path) -> None:
    (tmp_path / SCALING).write_text('{"schema": 0}\n')
    said = in_a_line(command("--lengths", "1", "--out", tmp_path, code=1))
    assert "schema=0, expected 1" in said


@pytest.mark.slow
def test_all_curves_on_a_cpu(tmp_path: Path) -> None:
    said = command("--lengths", "1,2,50,300", "--stop-ms", "60", "--batch", "16", "--out", tmp_path)
    assert {name for name, _, _ in points(tmp_path / SCALING)} == {
        one.name for one in usual_curves(CPU)
    }
    assert "* above 60 ms, where the curve ends" in said


@pytest.mark.gpu
def test_on_a_gpu(tmp_path: Path) -> None:
    device, path = torch.device("cuda"), tmp_path / "a"
    some = Request(batch=64, batches=3, hidden_size=32)
    measure_curves(usual_curves(device), [1, 40], some, path, device, nothing)
    rows = read_results(path)
    assert points(path) == [(name, length, "") for name in CURVES for length in (1, 40)]
    assert all(row["peak_bytes"] > 0 for row in rows)
    for row in rows:
        assert row["how"] == ("captured" if CURVES[row["curve"]].capture else "called"), row
    # beyond any memory: a marked row, and the device goes on
    row = measure(CURVES["lstm"], 1 << 40, some, device, nothing)
    assert row["end"] == "memory"
    assert measure(CURVES["pr_lstm"], 40, some, device, nothing)["how"] == "captured"
