"""The models that come with the package answer at once."""

from pathlib import Path

import pytest
import torch

import prlstm
from prlstm import models
from prlstm.models.folder import folder_of
from prlstm.models.shipping import FOLDER

# both files of all of them
MOST_BYTES = 5_000_000


def test_one_for_each_task_that_is_solved() -> None:
    assert models.shipped() == [
        "bucket_sort", "cycle_navigation", "even_pairs", "missing_duplicate_string",
        "modular_arithmetic", "parity_check",
    ]  # fmt: skip


@pytest.mark.parametrize("name", models.shipped())
def test_they_are_right_on_words_longer_than_they_have_seen(name: str) -> None:
    model = prlstm.load(name)
    assert (model.name, model.task.name) == ("pr_lstm", name)
    batch = model.task.sample(32, 200, generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        said = model(batch.input).argmax(-1)
    right = (said == batch.target)[batch.mask].double().mean()
    assert right >= 0.9, f"{right:.3f}"


def test_together_they_are_small() -> None:
    files = [path for path in FOLDER.rglob("*") if path.is_file()]
    assert {path.name for path in files} == {"config.json", "model.safetensors"}
    assert sum(path.stat().st_size for path in files) < MOST_BYTES


def test_a_folder_that_is_there_comes_first(tmp_path: Path, monkeypatch) -> None:
    assert folder_of("parity_check") == FOLDER / "parity_check"
    assert folder_of("elsewhere") == Path("elsewhere")
    monkeypatch.chdir(tmp_path)
    # of something else
    Path("parity_check").mkdir()
    assert folder_of("parity_check") == FOLDER / "parity_check"
    models.save(models.build("pr_lstm", "even_pairs", hidden_size=2, seed=0), "parity_check")
    assert folder_of("parity_check") == Path("parity_check")
    assert prlstm.load("parity_check").task.name == "even_pairs"
    with pytest.raises(FileNotFoundError, match="expected a folder, or one of bucket_sort"):
        prlstm.load("parity_chekc")


def test_they_have_their_last_weights_alone() -> None:
    with pytest.raises(ValueError, match="weights='best': expected 'last' of parity_check"):
        models.load("parity_check", weights="best")
