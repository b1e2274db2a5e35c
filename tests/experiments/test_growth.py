"""The measurements behind Table 1: what is measured, skipped, continued, and said."""

import importlib
import itertools
from pathlib import Path

import pytest
import torch
import typer
from typer.testing import CliRunner

from prlstm import models
from prlstm.cli.reproduce.table1 import table1
from prlstm.experiments import growth
from prlstm.experiments.gradients import Gradients, Weights, fresh, gradient_norms
from prlstm.experiments.growth import TIMED, Growth
from prlstm.files import Row
from prlstm.report.rows import GRADIENTS, GROWTH, append_results, read_results

CPU = torch.device("cpu")
SMALL = ("--lengths", "2,4,8", "--length", "9", "--hidden-size", "3", "--device", "cpu")


@pytest.fixture(autouse=True)
def _in_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "SECONDS", 0.0)


def said(*arguments: str | Path, code: int = 0) -> str:
    app = typer.Typer()
    app.command()(table1)
    environment = {"COLUMNS": "100", "TERM": "dumb"}
    done = CliRunner().invoke(app, [str(one) for one in arguments], env=environment)
    unexpected = done.exception if not isinstance(done.exception, SystemExit) else None
    assert done.exit_code == code, (done.output, unexpected)
    return done.output


def without_time(rows: list[Row]) -> list[Row]:
    return [
        {k: v for k, v in one.items() if k not in ("ms", "ms_quartiles", "repeats")} for one in rows
    ]


@pytest.mark.parametrize("stopped", [0, 1, 5, 8])
def test_stopped_and_continued_times_are_those_at_once(tmp_path: Path, stopped: int) -> None:
    asked = Growth([3, 8], 4, CPU)
    once, twice = tmp_path / "once.jsonl", tmp_path / "twice.jsonl"
    assert len(list(asked.measure(asked.missing([]), once))) == 2 * len(TIMED)
    list(itertools.islice(asked.measure(asked.missing([]), twice), stopped))
    list(asked.measure(asked.missing(read_results(twice)), twice))
    assert without_time(read_results(once)) == without_time(read_results(twice))
    assert not asked.missing(read_results(twice))


def test_another_size_length_or_machine_is_measured_anew(tmp_path: Path) -> None:
    path = tmp_path / GROWTH
    asked = Growth([3], 4, CPU)
    list(asked.measure(asked.missing([]), path))
    rows = read_results(path)
    assert len(Growth([3, 4], 4, CPU).missing(rows)) == len(TIMED)
    assert len(Growth([3], 5, CPU).missing(rows)) == len(TIMED)
    for name, value in (("device", "another"), ("threads", 1000)):
        moved = [one | {"made_with": one["made_with"] | {name: value}} for one in rows]
        assert len(asked.missing(moved)) == len(TIMED)
    # a GPU's time does not depend on the threads of its host
    gpu = [one | {"made_with": one["made_with"] | {"cuda": "13.0"}} for one in rows]
    assert growth._identity(gpu[0])[-1] is None


def test_no_memory_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(call: object, *others: object) -> list[float]:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(growth, "_repeat", full)
    asked = Growth([3], 4, CPU)
    rows = list(asked.measure(asked.missing([]), tmp_path / GROWTH))
    assert [row["failed"] for row in rows] == ["out of memory"] * len(TIMED)
    assert not asked.missing(read_results(tmp_path / GROWTH))


@pytest.mark.parametrize("stopped", [0, 1, 7, 12])
def test_stopped_and_continued_gradients_are_those_at_once(tmp_path: Path, stopped: int) -> None:
    asked = Gradients(fresh(3), 6, CPU)
    once, twice = tmp_path / "once.jsonl", tmp_path / "twice.jsonl"
    assert len(list(asked.measure(asked.missing([]), once))) == 12
    list(itertools.islice(asked.measure(asked.missing([]), twice), stopped))
    list(asked.measure(asked.missing(read_results(twice)), twice))
    assert read_results(once) == read_results(twice)
    assert [len(row["norms"]) for row in read_results(once)] == [6, 5] * 6


@pytest.mark.parametrize("name", ["pr_lstm", "pr_gru", "lstm", "gru"])
def test_a_norm_is_that_of_the_jacobian(name: str) -> None:
    length, size = 7, 3
    model = models.build(name, "parity_check", seed=0, dtype=torch.float64, hidden_size=size)
    word = model.task.sample(1, length, generator=torch.Generator().manual_seed(0)).input

    def last(x: torch.Tensor) -> torch.Tensor:
        network: torch.nn.Module = model.network
        if name.startswith("pr_"):
            return network.layer(x)[0][0, -1]  # type: ignore[operator,no-any-return,union-attr]
        return network.states(x)[0][0, -1]  # type: ignore[operator,no-any-return]

    x = torch.nn.functional.one_hot(word, 3).double()
    jacobian = torch.autograd.functional.jacobian(last, x)[:, 0]
    exact = jacobian.square().sum((0, 2)).sqrt().flip(0)
    # many draws of the signs: their mean square is the squared Frobenius norm
    generator = torch.Generator().manual_seed(0)
    many = word.expand(4000, -1)
    estimated = torch.tensor(gradient_norms(model, many, generator), dtype=torch.float64)
    torch.testing.assert_close(estimated, exact, rtol=0.06, atol=0)


def test_a_balanced_tree_keeps_what_a_chain_forgets() -> None:
    norms = {}
    for name in ("pr_lstm", "lstm"):
        model = models.build(name, "parity_check", seed=0, dtype=torch.float64, hidden_size=16)
        words = torch.zeros(2, 128, dtype=torch.long)
        norms[name] = gradient_norms(model, words, torch.Generator().manual_seed(0))
    assert min(norms["pr_lstm"]) > 0.1 * max(norms["pr_lstm"])
    assert norms["lstm"][-1] < 1e-2 * norms["lstm"][0]


def test_weights_of_a_run_are_told_apart_by_what_they_are(tmp_path: Path) -> None:
    path, folder = tmp_path / GRADIENTS, tmp_path / "learned"
    models.save(models.build("pr_lstm", "even_pairs", seed=0, hidden_size=3), folder)
    asked = Gradients([Weights("learned", folder=folder)], 5, CPU)
    list(asked.measure(asked.missing([]), path))
    assert {(row["run"], row["task"]) for row in read_results(path)} == {("learned", "even_pairs")}
    assert not asked.missing(read_results(path))
    models.save(models.build("pr_lstm", "even_pairs", seed=1, hidden_size=3), folder)
    assert len(asked.missing(read_results(path))) == 2


def test_the_command(tmp_path: Path) -> None:
    folder = tmp_path / "learned"
    models.save(models.build("lstm", "even_pairs", seed=0, hidden_size=3), folder)
    text = said(*SMALL, "--run", folder, "--out", tmp_path / "out")
    assert "times: 12 of 12" in text
    assert "gradients: 14 of 14" in text
    assert "8,178    22" in text
    names = [line.strip() for line in text.partition("Written:")[2].split()]
    assert len(names) == 16
    assert all(Path(name).stat().st_size for name in names)


def test_an_interrupted_command_keeps_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # what is counted is not what is stopped
    command = importlib.import_module("prlstm.cli.reproduce.table1")
    for name, value in {"COUNTED": (2, 8), "LONGEST": 8, "DISTANCES": (1, 4)}.items():
        monkeypatch.setattr(command, name, value)
    timed, calls = growth._timed, itertools.count()

    def interrupted(*given: object) -> Row:
        if next(calls) == 5:
            raise KeyboardInterrupt
        return timed(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(growth, "_timed", interrupted)
    text = said(*SMALL, "--out", tmp_path, code=130)
    assert "the same command goes on" in text
    assert len(read_results(tmp_path / GROWTH)) == 5
    assert "times: 7 of 7" in said(*SMALL, "--out", tmp_path)
    found = [(row["length"], row["model"]) for row in read_results(tmp_path / GROWTH)]
    assert found == [(length, one.name) for length in (2, 4, 8) for one in TIMED]


def test_a_time_is_the_median_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = [1.0, 2.0, 3.0, 4.0, 100.0]
    monkeypatch.setattr(growth, "_repeat", lambda *_: taken)
    row = growth._timed(lambda: None, CPU)
    assert row == {"ms": 3.0, "ms_quartiles": [2.0, 4.0], "repeats": 5}


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--lengths", "0"], 2, "expected numbers from 1"),
        (["--lengths", "a,b"], 2, "'a,b'"),
        (["--length", "2"], 2, "length=2: expected 3 <= length"),
        (["--hidden-size", "0"], 2, "hidden_size=0: expected hidden_size >= 1"),
        (["--device", "tpu"], 2, "'tpu'"),
        (["--run", "nobody"], 1, "'nobody'"),
    ],
)
def test_wrong_use(tmp_path: Path, arguments: list[str], code: int, says: str) -> None:
    assert says in said(*arguments, "--out", tmp_path / "out", code=code)
    assert not (tmp_path / "out").exists()


def test_a_run_without_a_state(tmp_path: Path) -> None:
    folder = tmp_path / "attentive"
    models.save(models.build("transformer_encoder", "even_pairs", seed=0), folder)
    text = said(*SMALL, "--run", folder, "--out", tmp_path, code=1)
    assert "run='attentive': a transformer_encoder has no state to follow back" in text


def test_rows_of_another_schema(tmp_path: Path) -> None:
    append_results(tmp_path / GROWTH, [])
    (tmp_path / GROWTH).write_text('{"schema": 0}\n')
    assert "schema=0, expected 1" in said(*SMALL, "--out", tmp_path, code=1)
