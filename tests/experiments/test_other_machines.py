"""Times of one machine say nothing of another's; a cell that is too large stops no other."""

from pathlib import Path

import pytest
import torch

from prlstm.environment import environment, place_of
from prlstm.experiments import runs
from prlstm.experiments.budget import in_order
from prlstm.experiments.crew import Heard, work
from prlstm.experiments.runs import Store, Wanted, make
from prlstm.files import Row
from prlstm.report.columns import Column
from prlstm.report.rows import CURVES, FIGURE3, SCORES, read_results
from prlstm.training import Event, Request, loop

CPU = torch.device("cpu")
COLUMN = Column("rnn", "RNN", "rnn", {"hidden_size": 4, "batch_size": 8})
CELLS = [Wanted(task, COLUMN, (0,), "float32") for task in ("parity_check", "even_pairs")]
REQUEST = Request(steps=20, validate_every=0, samples=64)


@pytest.fixture(autouse=True)
def _short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "BLOCK", 10)


def quiet(event: Event | Heard) -> None:
    pass


@pytest.mark.parametrize("other", [{"device": "another"}, {"threads": 999}], ids=str)
def test_curves_of_another_machine_are_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: Row
) -> None:
    def there(device: torch.device) -> Row:
        return environment(device) | other

    results, cell = tmp_path / "results", CELLS[0]
    with monkeypatch.context() as patch:
        patch.setattr(runs, "environment", there)
        place = place_of(there(CPU))
        store = Store(results, tmp_path / "there", FIGURE3, is_scored=False, place=place)
        make(cell, REQUEST, store, CPU, quiet)
        assert not store.missing(cell, REQUEST)
    place = place_of(environment(CPU))
    store = Store(results, tmp_path / "here", FIGURE3, is_scored=False, place=place)
    assert store.missing(cell, REQUEST)
    make(cell, REQUEST, store, CPU, quiet)
    make(cell, REQUEST, store, CPU, quiet)
    assert not store.missing(cell, REQUEST)
    rows = read_results(results / FIGURE3)
    assert [row["step"] for row in rows] == [[10, 20], [10, 20]]
    assert len({place_of(row["made_with"]) for row in rows}) == 2


def test_threads_tell_nothing_of_a_gpu() -> None:
    made_with = {"device": "a GPU", "threads": 2, "cuda": "13.0"}
    assert place_of(made_with) == place_of(made_with | {"threads": 16})


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate"),
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_cell_that_is_too_large_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    train = runs.train

    def too_large(configs, *more, **named):
        if configs[0].task == "parity_check":
            raise error
        return train(configs, *more, **named)

    monkeypatch.setattr(runs, "train", too_large)
    store = Store(tmp_path / "results", tmp_path / "runs", CURVES, lengths=(5,))
    (failure,) = work(CELLS, in_order(CELLS, REQUEST, store), store, CPU, quiet)
    assert failure.startswith("RNN on parity_check: not enough memory")
    assert {row["task"] for row in read_results(store.results / SCORES)} == {"even_pairs"}


def test_another_error_stops_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*given: object, **named: object) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(runs, "train", wrong)
    store = Store(tmp_path / "results", tmp_path / "runs", CURVES, lengths=(5,))
    with pytest.raises(RuntimeError, match="a mistake"):
        work(CELLS, in_order(CELLS, REQUEST, store), store, CPU, quiet)
