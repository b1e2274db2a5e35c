"""Figures of runs: what they show, and that they are files."""

from pathlib import Path

import pytest

from prlstm.report.figures import Curve, draw_runs, save_figure
from tests.cli.command import TINY, prlstm


def curve(**more: object) -> Curve:
    usual: dict[str, object] = {
        "label": "seed 0",
        "title": "Parity Check, pr_lstm",
        "metrics": [{"step": s, "loss": 1 / s, "accuracy": 1 - 0.5 / s} for s in (1, 2, 3)],
        "validations": [{"step": 3, "accuracy": 0.75}],
        "lengths": (41, 42, 43),
        "accuracy": (1.0, 0.5, 0.25),
        "longest": 40,
        "floor": 0.5,
    }
    return Curve(**usual | more)  # type: ignore[arg-type]


def test_what_is_drawn() -> None:
    figure = draw_runs([curve(), curve(label="seed 1", longest=30)])
    loss, accuracy, length = figure.axes
    assert [line.get_xydata().tolist()[-1] for line in loss.lines] == [
        [3, pytest.approx(1 / 3)]
    ] * 2
    assert accuracy.lines[1].get_xydata().tolist() == [[3, 0.75]]
    assert length.lines[0].get_xydata().tolist() == [[41, 1.0], [42, 0.5], [43, 0.25]]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["seed 0", "seed 1"]
    # the lengths of training are shaded, and what guessing reaches is a line
    (shaded,) = length.patches
    assert shaded.get_x() + shaded.get_width() == 40
    assert length.lines[-1].get_ydata()[0] == 0.5
    assert "not scored yet" not in [text.get_text() for text in length.texts]


def test_before_the_first_row() -> None:
    figure = draw_runs([curve(metrics=[], validations=[], lengths=(), accuracy=())])
    assert "not scored yet" in [text.get_text() for text in figure.axes[2].texts]


def test_equal_figures_are_equal_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save_figure(draw_runs([curve()]), tmp_path / name)
    for ending in ("svg", "png"):
        one, other = ((tmp_path / f"{name}.{ending}").read_bytes() for name in ("a", "b"))
        assert one == other
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")
    assert (tmp_path / "a.png").read_bytes()[1:4] == b"PNG"


def test_the_command(tmp_path: Path) -> None:
    # validated at the last step alone: the best weights are the last, and scored once
    some = (*TINY, "--steps", "10", "--validate-every", "10", "--seeds", "2", "--out", tmp_path)
    prlstm("train", "parity_check", *some)
    first, second = sorted(tmp_path.iterdir())
    said = prlstm("plot", first).split()
    assert said == [str(first / "plot.svg"), str(first / "plot.png")]
    alone = (first / "plot.svg").read_bytes()
    # several stand beside their folders: a run's own is kept
    said = prlstm("plot", first, second).split()
    assert said == [str(first.parent / "plot.svg"), str(first.parent / "plot.png")]
    assert "Parity Check, pr_lstm" in (first.parent / "plot.svg").read_text()
    assert (first / "plot.svg").read_bytes() == alone
    said = prlstm("plot", second.name, "--out", tmp_path, "--to", tmp_path / "here.png").split()
    assert said == [str(tmp_path / "here.svg"), str(tmp_path / "here.png")]
    text = prlstm("plot", first, "--to", tmp_path / "no" / "folder", code=1)
    assert "No such file or directory" in text
