"""What happens in training, as event files for TensorBoard: one folder per run."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from prlstm.training.events import Block, Event, Report, Validated
from prlstm.training.runs import RunFolder

FOLDER = "tensorboard"


@contextmanager
def event_files(folders: Sequence[RunFolder], report: Report) -> Iterator[Report]:
    """Report to event files, and then to `report`."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "--tensorboard needs the package tensorboard: pip install 'prlstm[tensorboard]'"
        ) from None
    for folder in folders:
        if (folder.path / FOLDER).is_symlink():
            raise ValueError(f"{folder.path / FOLDER}: expected a folder, not a link to one")
    writers = {folder: SummaryWriter(folder.path / FOLDER) for folder in folders}

    def told(event: Event) -> None:
        match event:
            case Block():
                for seed, folder in enumerate(event.folders):
                    for name in ("loss", "accuracy", "norm"):
                        value = getattr(event, name)[seed].item()
                        writers[folder].add_scalar(f"training/{name}", value, event.step)
            case Validated():
                writer = writers[event.folder]
                writer.add_scalar("validation/accuracy", event.accuracy, event.step)
        report(event)

    try:
        yield told
    finally:
        for writer in writers.values():
            writer.close()
