"""A run that goes on from a checkpoint ends where it would have ended."""

import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from prlstm.files import write_whole
from prlstm.training import Trainer
from prlstm.training.checkpoint import Checkpoint, restore, take
from tests.training.test_trainer import SMALL, run


def same_checkpoints(first: list[Checkpoint], second: list[Checkpoint]) -> bool:
    return all(
        (a.step, a.run) == (b.step, b.run)
        and a.parts.keys() == b.parts.keys()
        and all(
            tensor.equal(b.parts[part][name])
            for part, named in a.parts.items()
            for name, tensor in named.items()
        )
        for a, b in zip(first, second, strict=True)
    )


@pytest.mark.parametrize("model", SMALL)
@pytest.mark.parametrize("seeds", [[3], [3, 5]])
@pytest.mark.parametrize("stop", [0, 7])
def test_going_on_gives_equal_bits(model: str, seeds: list[int], stop: int, tmp_path: Path) -> None:
    runs = [run(model, "stack_manipulation", seed=seed) for seed in seeds]
    straight = Trainer(runs)
    straight.update(15)
    cut = Trainer(runs)
    cut.update(stop)
    for seed, checkpoint in enumerate(take(cut)):
        checkpoint.write(tmp_path / f"{seed}.safetensors")
    resumed = Trainer(runs)
    restore(resumed, [Checkpoint.read(tmp_path / f"{n}.safetensors") for n in range(len(seeds))])
    assert resumed.step == stop
    resumed.update(15 - stop)
    assert same_checkpoints(take(resumed), take(straight))


def test_a_seed_may_go_on_alone(tmp_path: Path) -> None:
    runs = [run(seed=seed, precision="float64") for seed in (1, 2)]
    together = Trainer(runs)
    together.update(5)
    alone = Trainer(runs[1:])
    restore(alone, take(together)[1:])
    alone.update(5)
    together.update(5)
    for name, weight in take(alone)[0].weights.items():
        torch.testing.assert_close(weight, take(together)[1].weights[name])


def test_equal_checkpoints_are_equal_bytes(tmp_path: Path) -> None:
    trainer = Trainer([run()])
    trainer.update(2)
    for name in ("a", "b"):
        take(trainer)[0].write(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    Checkpoint.read(tmp_path / "a").write(tmp_path / "c")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "c").read_bytes()


class TestFaults:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        trainer = Trainer([run()])
        trainer.update(2)
        take(trainer)[0].write(tmp_path / "x.safetensors")
        return tmp_path / "x.safetensors"

    def refused(self, path: Path, message: str) -> None:
        with pytest.raises(ValueError, match=re.escape(message)):
            Checkpoint.read(path)

    @pytest.mark.parametrize("kept", [0, 5, 100, -1])
    def test_truncated(self, path: Path, kept: int) -> None:
        path.write_bytes(path.read_bytes()[:kept])
        self.refused(path, "not a whole checkpoint")

    def test_foreign(self, path: Path) -> None:
        save_file({"weights/a": torch.zeros(3)}, path)
        self.refused(path, "not a checkpoint of a run, expected format 'prlstm checkpoint 1'")

    def test_of_another_run(self, path: Path) -> None:
        with pytest.raises(
            ValueError, match=r"a checkpoint of 'parity_check-pr_lstm-.*-s0': expected"
        ):
            restore(Trainer([run(seed=9)]), [Checkpoint.read(path)])

    def test_runs_at_different_steps(self, path: Path) -> None:
        runs = [run(), run(seed=1)]
        other = Trainer(runs[1:])
        other.update(1)
        with pytest.raises(ValueError, match=r"stands at step 1, .* at 2: expected one step for"):
            restore(Trainer(runs), [Checkpoint.read(path), *take(other)])

    def test_a_write_that_fails_leaves_what_was_there(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = path.read_bytes()

        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space left"):
            write_whole(path, b"new")
        assert path.read_bytes() == before
        assert [file.name for file in path.parent.iterdir()] == [path.name]
