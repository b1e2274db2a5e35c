"""What is drawn: the colours of the states, what a flip lights, the marks of the answers."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from prlstm import models
from prlstm.models.inspection import Inspection, inspect
from tests.browser.conftest import Open, Scheme
from tests.browser.explorer.conftest import expect, flip, read, rows, state_of
from tests.browser.test_report import CONTRASTS

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

# of every node in the box: the cells that it covers, the colour in the middle of every feature
COLOURS = """
([box, columns]) => {
  const drawing = document.querySelector(`${box} .explorer-drawing`);
  const canvas = drawing.querySelector("canvas"), copy = canvas.cloneNode();
  const pen = copy.getContext("2d", { willReadFrequently: true });
  pen.drawImage(canvas, 0, 0);
  const sharp = canvas.width / parseFloat(drawing.style.width);
  const colour = (x, y) => [...pen.getImageData(x * sharp, y * sharp, 1, 1).data].slice(0, 3);
  return [...drawing.querySelectorAll(".explorer-node")].map(({ style }) => {
    const [x, y, wide, high] = ["left", "top", "width", "height"].map((n) => parseFloat(style[n]));
    const side = wide / columns;
    // a strip has a line of a pixel for each feature
    const line = columns === 1 ? 1 : side;
    return Array.from({ length: Math.round(high / line) * columns }, (_, at) =>
      colour(x + ((at % columns) + 0.4) * side, y + (Math.floor(at / columns) + 0.5) * line));
  });
}
"""


def warmth(colours: object) -> torch.Tensor:
    """Red less blue: the colours of a scheme lie on two lines, on which it grows with the value."""
    made = torch.tensor(colours, dtype=torch.float64)
    return made[..., 0] - made[..., 2]


def spans(count: int) -> list[tuple[int, int]]:
    """The first and last cell of every node, as the page orders them: by the cell that is last."""
    made = []
    for stop in range(1, count + 1):
        size = 1
        while stop % size == 0:
            made.append((stop - size + 1, stop))
            size *= 2
        if stop & (stop - 1):
            made.append((1, stop))
    return made


def children(start: int, stop: int) -> list[tuple[int, int]]:
    size = stop - start + 1
    right = (size & -size) if size & (size - 1) else size // 2
    return [(start, stop - right), (stop - right + 1, stop)] if right else []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("name", "length", "columns"), [("parity_check", 13, 8), ("new_even_pairs", 61, 1)]
)
def test_every_node_has_the_colours_of_its_state(
    visit: Open, file: Path, folders: dict[str, Path],
    scheme: Scheme, name: str, length: int, columns: int,
) -> None:  # fmt: skip
    page = visit(file, 1280, scheme).page
    text = ("01101001" * 8)[:length]
    read(page, text, name)
    model = models.load(folders[name]).double()
    seen = inspect(model, model.task.read(text))
    warm = warmth(page.evaluate(COLOURS, ["#explorer-scroll", columns]))
    h = torch.stack([state_of(seen, *span)[0] for span in spans(length + 1)])
    assert warm.shape == h.shape
    # below zero blue, above it orange
    assert warm[h < -0.1].max() < -15
    assert warm[h > 0.1].min() > 15
    assert warm[h.abs() < 0.01].abs().max() < 30
    by_value = warm.flatten()[h.flatten().argsort()]
    # a colour is rounded
    assert by_value.diff().min() > -4
    legend = page.locator("#explorer-scale").evaluate(
        """(one) => {
          const { data } = one.getContext("2d").getImageData(0, 4, one.width, 1);
          return [[...data.slice(0, 3)], [...data.slice(-4, -1)]];
        }"""
    )
    low, high = warmth(legend).tolist()
    assert low <= by_value[0] < 0 < by_value[-1] <= high


def changed_spans(before: Inspection, after: Inspection) -> set[tuple[int, int]]:
    return {
        span
        for span in spans(len(after.cells))
        if (state_of(before, *span)[0] - state_of(after, *span)[0]).norm() > 1e-6
    }


def test_a_flip_lights_the_wires_between_nodes_that_change(page: "Page") -> None:
    model = models.load("parity_check").double()
    read(page, "0110100110010")
    lit = page.locator("#explorer-scroll path.explorer-lit")
    assert lit.get_attribute("d") == ""
    flip(page, 4)
    before, after = (
        inspect(model, model.task.read(one)) for one in ("0110100110010", "0110000110010")
    )
    changed = changed_spans(before, after)
    wires = [
        (child, span) for span in spans(14) for child in children(*span) if {child, span} <= changed
    ]
    assert 0 < len(wires) < 2 * len(changed)
    assert (lit.get_attribute("d") or "").count("M") == len(wires)
    # all of them, and a stem for each of 14 cells and for the answer
    every = page.locator("#explorer-scroll .explorer-wires path").first.get_attribute("d") or ""
    assert every.count("M") == sum(len(children(*span)) for span in spans(14)) + 15
    for number, span in enumerate(spans(14)):
        label = (
            page.locator("#explorer-scroll .explorer-node").nth(number).get_attribute("aria-label")
        )
        norms = [float(state_of(one, *span)[0].norm()) for one in (before, after)]
        assert f", norm {norms[1]:.2f}" in str(label)
        change = float((state_of(before, *span)[0] - state_of(after, *span)[0]).norm())
        assert ("changed by" in str(label)) is (span in changed)
        if change > 0.005:
            assert str(label).endswith(f", changed by {change:.2f}")


@pytest.mark.parametrize("name", ["parity_check", "new_cycle_navigation", "bucket_sort"])
def test_answers_are_marked(page: "Page", folders: dict[str, Path], name: str) -> None:
    """Below the tree and in the table, before and after a flip."""
    model = models.load(folders[name]).double()
    task = model.task
    text = page.evaluate("([name]) => explorer.draw(name, 13)", [name])
    if name == "bucket_sort":
        # it is wrong after some tokens of a long word only
        text = "31402" * 20
    read(page, text, name)
    kinds = set()
    before: list[str] = []
    for flipped in (False, True):
        if flipped:
            flip(page, 1)
            text = page.input_value("#explorer-word")
        seen = inspect(model, task.read(text))
        table = rows(page).evaluate_all(
            "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
        )
        marks = page.locator("#explorer-scroll .explorer-outcomes span").evaluate_all(
            "(marks) => marks.map((mark) => [mark.textContent, [...mark.classList]])"
        )
        answers = [
            "".join(task.answer_symbols[one] for one in each.classes) for each in seen.answers
        ]
        assert len(table) == len(answers)
        for count, (row, mark, each, said) in enumerate(
            zip(table, marks, seen.answers, answers, strict=False), 1
        ):
            assert each.truth is not None
            right = each.classes == each.truth
            truth = "".join(task.answer_symbols[one] for one in each.truth)
            assert row == [
                f"{count} {text[count - 1]}", said, percent(min(each.sure)),
                "✓ right" if right else f"✗ {truth}",
            ]  # fmt: skip
            written = said if task.single_output else "✓" if right else "✗"
            kinds.add(right)
            assert mark[0] == written
            assert (f"explorer-{'right' if right else 'wrong'}" in mark[1]) is True
            assert ("explorer-differs" in mark[1]) is (flipped and said != before[count - 1])
        last_one = seen.answers[-1]
        assert last_one.truth is not None
        final = marks[len(table) :]
        assert len(final) == len(last_one.classes)
        differ = [False] * len(final)
        if flipped:
            differ = [one != other for one, other in zip(answers[-1], before[-1], strict=True)]
            assert any(differ) or name == "new_cycle_navigation"
        for mark, said, truth, differs in zip(
            final, answers[-1], "".join(task.answer_symbols[one] for one in last_one.truth), differ,
            strict=True,
        ):  # fmt: skip
            assert mark[0] == said
            assert f"explorer-{'right' if said == truth else 'wrong'}" in mark[1]
            assert ("explorer-differs" in mark[1]) is differs
        before = answers
    if name != "parity_check":
        assert kinds == {True, False}


def percent(share: float) -> str:
    rounded = f"{100 * share:.2f}"
    return "> 99.99 %" if rounded == "100.00" and share < 1 else f"{rounded} %"


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_legible_in_both_schemes_and_on_narrow_screens(
    visit: Open, file: Path, scheme: Scheme, width: int
) -> None:
    there = visit(file, width, scheme)
    page = there.page
    page.emulate_media(reduced_motion="reduce", color_scheme=scheme)

    def look(name: str) -> None:
        expect(page.locator("#explorer-progress")).not_to_contain_text("are read", timeout=60_000)
        there.screenshot(f"explorer-{scheme}-{width}-{name}", "#explorer")
        assert there.sideways == 0, name
        poor = [one for one in page.evaluate(CONTRASTS) if one[1] < 4.5]
        assert poor == [], name

    for text in ("0", "0110100110010", "01101" * 100):
        page.fill("#explorer-word", text)
        look(f"{len(text)}")
        page.locator(".explorer-token").last.click()
        look(f"{len(text)}-flipped")
    for task in ("bucket_sort", "modular_arithmetic", "missing_duplicate_string"):
        page.select_option("#explorer-model", f"new_{task}")
        look(task)
    page.fill("#explorer-word", "not a word")
    look("advice")


def test_heat_maps_follow_the_scheme(page: "Page") -> None:
    seen = []
    for scheme, chosen in (("light", ""), ("dark", ""), ("dark", "light")):
        page.emulate_media(color_scheme=scheme)
        page.evaluate("(chosen) => (document.documentElement.dataset.theme = chosen)", chosen)
        # what listens to the scheme is called before the next frame
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        seen.append(page.locator("#explorer-details canvas").evaluate("one => one.toDataURL()"))
    light, dark, light_again = seen
    assert light == light_again != dark


def test_reduced_motion_is_respected(page: "Page") -> None:
    for choice, moves in (("reduce", False), ("no-preference", True)):
        page.emulate_media(reduced_motion=choice)
        page.locator(".explorer-token").first.click()
        duration = page.locator(".explorer-changed").first.evaluate(
            "node => parseFloat(getComputedStyle(node).transitionDuration)"
        )
        assert (duration > 0) is moves
