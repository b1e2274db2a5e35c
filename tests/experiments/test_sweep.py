"""Grids of settings in a file."""

from pathlib import Path

import pytest

from prlstm.experiments.sweep import read_lengths, read_sweep
from prlstm.tasks.floors import SCORED


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "grid.toml"
    path.write_text(text)
    return path


def test_all_combinations(tmp_path: Path) -> None:
    text = """
        task = ["parity_check", "even_pairs"]
        model = "lstm"
        hidden_size = [4, 8]
        learning_rate = [1e-3, 3e-3]
        longest = 20
        seeds = "2:3"
        steps = 70
        lengths = ["5:7", 9]
        samples = 64
    """
    sweep = read_sweep(written(tmp_path, text))
    assert len(sweep.cells) == 8
    assert sweep.lengths == (5, 6, 7, 9)
    assert (sweep.request.steps, sweep.request.samples) == (70, 64)
    made = {
        (c.task, config.hyper_parameters["hidden_size"], config.schedule.rate, config.seed)
        for c in sweep.cells
        for config in c.configs
    }
    assert len(made) == 16
    assert ("even_pairs", 8, 3e-3, 3) in made
    for cell in sweep.cells:
        assert all(config.curriculum.longest == 20 for config in cell.configs)
        # what all have is not told, what differs is
        assert "longest" not in cell.column.title
        assert "hidden_size" in cell.column.title
    assert len({config.name for cell in sweep.cells for config in cell.configs}) == 16


def test_one_line_is_enough(tmp_path: Path) -> None:
    (cell,) = read_sweep(written(tmp_path, 'task = "parity_check"')).cells
    (config,) = cell.configs
    assert (config.model, config.seed, config.own()) == ("pr_lstm", 0, {})
    assert cell.column.title == "pr_lstm"


def test_precisions_are_cells_of_their_own(tmp_path: Path) -> None:
    text = 'task = "parity_check"\nprecision = ["float32", "bfloat16"]\nmodel = "lstm"'
    first, second = read_sweep(written(tmp_path, text)).cells
    assert (first.precision, second.precision) == ("float32", "bfloat16")
    rows = [{"model": "lstm", "setting": config.own()} for config in second.configs]
    assert second.column.fits(rows[0])
    assert not first.column.fits(rows[0])


@pytest.mark.parametrize(
    ("given", "expected"),
    [(None, tuple(SCORED)), (7, (7,)), ("3:5", (3, 4, 5)), ([9, "3:4", 4], (3, 4, 9))],
)
def test_lengths(given: object, expected: tuple[int, ...]) -> None:
    assert read_lengths(given) == expected


@pytest.mark.parametrize("given", ["x", "5:3", 0, -1, "1:2:3", ["a"], 1.5, "1:9999999999", []])
def test_what_are_no_lengths(given: object) -> None:
    with pytest.raises(ValueError, match=r"lengths = .*expected"):
        read_lengths(given)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task =", "not TOML"),
        ("", "expected a line like task"),
        ("task = []", r"task = \[\]: expected at least one value"),
        ('task = "parity"', "parity"),
        ('task = "parity_check"\nmodel = "lstn"', "lstn"),
        ('task = "parity_check"\nhiden_size = 3', "hiden_size: no option of pr_lstm"),
        ('task = "parity_check"\nmodel = "lstm"\nrefine = 1', "refine: no option of lstm"),
        ('task = "parity_check"\nhidden_size = 0', "hidden_size"),
        (
            'task = "parity_check"\nlearning_rate = "fast"',
            "learning_rate = 'fast'.*expected numbers",
        ),
        ('task = "parity_check"\nseeds = 0', "seeds = 0: expected"),
        ('task = "parity_check"\nseeds = "a"', "seeds = 'a'.*expected"),
        ('task = "parity_check"\nsteps = 0', "steps=0"),
        ('task = "parity_check"\nsteps = [1, 2]', r"steps=\[1, 2\]"),
        ('task = "parity_check"\nsamples = 5', "samples=5"),
        ('[task]\na = "parity_check"', r"\[task\]"),
        ('task = "parity_check"\nseed = 3', "seed: no option"),
        ('task = "parity_check"\nhyper_parameters = 3', "hyper_parameters: no option"),
        (f'task = "parity_check"\nbatch_size = {list(range(1, 10_002))}', "at most 10,000"),
    ],
)
def test_what_is_wrong_is_named_with_the_file(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=rf"grid\.toml: .*{message}"):
        read_sweep(written(tmp_path, text))


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="expected a text file"):
        read_sweep(path)
    with pytest.raises(FileNotFoundError):
        read_sweep(tmp_path / "none.toml")
