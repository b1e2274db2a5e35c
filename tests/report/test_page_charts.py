"""Charts of the page: where things stand, what is said of them, how they are told apart."""

import re
from itertools import pairwise

import pytest

from prlstm.report.chart import Chart, Curve, Panel, as_latex, draw
from prlstm.report.figures import COLOURS
from prlstm.report.looks import KNOWN, looks_of
from prlstm.report.page.axes import MOST_TICKS, Axis
from prlstm.report.page.colours import CURVES, DARK, LIGHT
from prlstm.report.page.figures import LOOKS, figure
from prlstm.report.page.panels import BOTTOM, LEFT, MOST_POINTS, RIGHT, TOP, drawn
from prlstm.report.page.words import described
from prlstm.report.reference import is_alike, reference, with_reference
from prlstm.report.scaling import chart_of
from tests.report.made_results import scaling

PANEL = Panel(
    "A <title>", "length (tokens)", "accuracy",
    [Curve("LSTM", [41, 100, 500], [1.0, 0.5, 0.625]), Curve("one", [50], [0.25], "memory"),
     Curve("none", [], [], "refused")],
    lines={"guessing": 0.5}, bands={"trained on 1 to 40": (1, 40)}, shares=True,
)  # fmt: skip


@pytest.mark.parametrize(
    ("low", "high", "log", "labels"),
    [
        (0, 1, False, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (0, 1e6, False, ["0", "200k", "400k", "600k", "800k", "1M"]),
        (0, 153.7, False, ["0", "50", "100", "150"]),
        (-1, 3, False, ["-1", "0", "1", "2", "3"]),
        (1, 1 << 20, True, ["1", "100", "10k", "1M"]),
        (0.2, 9, True, ["0.3", "1", "3"]),
        (3e-11, 2, True, ["1e-10", "1e-8", "1e-6", "1e-4", "0.01", "1"]),
    ],
)
def test_round_values_are_written(low: float, high: float, log: bool, labels: list[str]) -> None:
    ticks = Axis.around([low, high], 0, 100, log=log).ticks()
    assert [tick.label for tick in ticks] == labels
    assert all(0 <= tick.at <= 100 for tick in ticks)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("values", [[], [0.0], [7.0], [float("nan"), -1.0, 5.0], [1e-300, 1e300]])
def test_any_values_have_an_axis(values: list[float], log: bool) -> None:
    axis = Axis.around(values, 10, 20, log=log)
    assert len(axis.ticks()) <= MOST_TICKS + 1
    assert all(10 <= axis.place(value) <= 20 for value in values if axis.holds(value))


def test_curves_stand_where_their_points_are() -> None:
    panel = drawn(PANEL, {"LSTM": 1, "one": 6, "none": 7})
    x = Axis(0, 500, LEFT, RIGHT)
    curve = panel.curves[0]
    numbers = [float(n) for n in re.findall(r"-?[\d.]+", curve.path)]
    assert numbers[:2] == [x.place(41), TOP]
    # from point to point
    assert sum(numbers[0::2]) == pytest.approx(RIGHT, abs=0.2)
    assert sum(numbers[1::2]) == pytest.approx(BOTTOM - 0.625 * (BOTTOM - TOP), abs=0.2)
    (band,) = panel.bands
    assert (band.start, band.width) == (
        x.place(1),
        pytest.approx(x.place(40) - x.place(1), abs=0.2),
    )
    assert [level.at for level in panel.levels] == [(TOP + BOTTOM) / 2]
    # few points have marks, the last one that of its end
    assert [len(one.marks) for one in panel.curves] == [3, 1, 0]
    assert not panel.curves[1].marks[0].filled


def test_names_of_levels_do_not_cover_each_other() -> None:
    lines = {"a": 0.5, "b": 0.5, "c": 0.52, "d": 0.99}
    levels = drawn(Panel("", "", "", [], lines=lines, shares=True), {}).levels
    places = sorted(level.text_at for level in levels)
    assert all(after - before >= 11 for before, after in pairwise(places))


def test_long_curves_are_thinned_and_keep_their_end() -> None:
    curve = Curve("LSTM", range(10_000), range(10_000))
    (one,) = drawn(Panel("", "", "", [curve]), {"LSTM": 0}).curves
    assert MOST_POINTS / 2 < one.path.count("l") <= MOST_POINTS + 1
    steps = [float(n) for n in re.findall(r"-?[\d.]+", one.path)]
    assert sum(steps[0::2]) == pytest.approx(RIGHT, abs=0.1 * MOST_POINTS)


def test_what_has_no_place_is_left_out() -> None:
    curve = Curve("LSTM", [1, 2, 3], [0.0, float("nan"), 5.0])
    (one,) = drawn(Panel("", "", "", [curve], log_x=True, log_y=True), {"LSTM": 0}).curves
    assert one.path.count("l") == 0
    assert one.path.startswith("M")


def test_a_chart_in_words() -> None:
    assert described(PANEL) == (
        "accuracy over length (tokens). Shaded: trained on 1 to 40, from 1 to 40. "
        "Level: guessing, at 0.5. LSTM: from 1 at 41 to 0.625 at 500, between 0.5 and 1. "
        "one: 0.25 at 50, stopped: out of memory. "
        "none: no point, stopped: refused by the library."
    )
    log = Panel("", "x", "y", [], log_x=True, log_y=True)
    assert described(log) == "y over x (logarithmic: x and y). There are no curves yet."


def test_models_keep_their_colours() -> None:
    looks = looks_of(["other", "LSTM", "PR-LSTM", "more"], LOOKS)
    assert (looks["PR-LSTM"], looks["LSTM"]) == (KNOWN["PR-LSTM"], KNOWN["LSTM"])
    models = list({look: label for label, look in KNOWN.items()}.values())
    many = looks_of([*models, *map(str, range(LOOKS - len(models)))], LOOKS)
    assert len(set(many.values())) == LOOKS
    assert len(looks_of([str(number) for number in range(100)], LOOKS)) == 100


def test_models_look_the_same_in_pictures_and_in_latex() -> None:
    """Whatever stands before them."""
    look = KNOWN["LSTM"]
    for others in ([], ["one"], ["one", "two", "three"]):
        curves = [Curve(label, [1, 2], [1, 2]) for label in (*others, "LSTM")]
        chart = Chart("", [Panel("", "x", "y", curves)])
        (axes,) = draw(chart).axes
        assert axes.lines[-1].get_color() == COLOURS[look]
        legend = as_latex(chart).partition(r"\addlegendentry{LSTM}")[0]
        assert f"addlegendimage{{curve{look}, " in legend.splitlines()[-1]


def test_numbers_of_a_figure() -> None:
    shared = [Curve("a", range(50), range(50)), Curve("b", range(49), range(49))]
    apart = [Curve("a", [1, 2], [3, 4]), Curve("b", [1.5, 2.5], [5, 6])]
    chart = Chart("a title", [Panel("one", "x", "y", shared), Panel("two", "x", "y", apart)])
    wide, tall = figure("name", chart).numbers
    assert wide.header == ["x", "a", "b"]
    assert wide.lines[0] == ["0", "0", "0"]
    assert wide.lines[-1] == ["49", "49", ""]
    assert len(wide.lines) == 16
    assert tall.header == ["curve", "x", "y"]
    assert tall.lines == [["a", "1", "3"], ["a", "2", "4"], ["b", "1.5", "5"], ["b", "2.5", "6"]]


def test_the_reference_stands_where_it_was_measured_alike() -> None:
    rows = list(scaling())
    ours = [row for row in rows if is_alike(row)]
    assert {row["made_with"]["device"] for row in ours} == {"NVIDIA H200"}
    assert {row["batch"] for row in ours} == {1024}
    assert not is_alike(ours[0] | {"hidden_size": 64})
    time, memory = with_reference(chart_of({"LSTM": [ours[0]]})).panels
    labels = [one["label"] for one in reference()["curves"]]
    assert [curve.label for curve in time.curves] == ["LSTM", *labels]
    assert [curve.label for curve in memory.curves] == ["LSTM", *labels[:4]]
    assert "NVIDIA H200" in reference()["source"]


def contrast(one: str, other: str) -> float:
    """As the guidelines for accessible pages define it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_are_seen(scheme: dict[str, str]) -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert set(LIGHT) == set(DARK)
    for ground in (scheme["ground"], scheme["raised"]):
        for name in ("ink", "quiet", "accent", "right", "wrong"):
            assert contrast(scheme[name], ground) >= 4.5, name
        for number in range(1, CURVES + 1):
            assert contrast(scheme[f"curve-{number}"], ground) >= 3, number
