"""The trained models that come with the package: one small PR-LSTM for each task it solves."""

from pathlib import Path

# a folder for each, as `prlstm.models.save` writes it; where they come from: `results/scores.jsonl`
FOLDER = Path(__file__).with_name("shipped")


def shipped() -> list[str]:
    """The tasks that have one, which are the names of the models."""
    return sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
