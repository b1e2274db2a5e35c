"""The tree on paper: nothing is cut, its colours are light, and the screen stays as it was."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import SCREENSHOTS, Open
from tests.browser.explorer.conftest import flip, read
from tests.browser.explorer.test_drawing import COLOURS

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

# told of the page while it has the width of the paper
LISTEN = """
() => {
  window.printed = [];
  const all = (of) => [...document.querySelectorAll(of)];
  matchMedia("print").addEventListener("change", ({ matches }) => {
    if (!matches) return;
    const box = document.querySelector("#explorer-paper");
    window.printed.push({
      page: document.documentElement.getBoundingClientRect().right,
      wide: all("#explorer-paper, .explorer-rows").map((one) => one.scrollWidth - one.clientWidth),
      ends: Math.max(...all("#explorer *").map((one) => one.getBoundingClientRect().right)),
      tokens: all("#explorer-paper .explorer-token").length,
      selected: box.querySelector("[aria-current]")?.ariaLabel,
      text: box.querySelector(".explorer-tokens")?.textContent,
      screen: document.querySelector("#explorer-scroll").checkVisibility(),
      whole: getComputedStyle(box.parentElement).breakInside,
      moves: box.getAnimations({ subtree: true }).length,
    });
  });
  // drawn by now: the page was first to listen
  window.addEventListener("beforeprint", () => {
    window.colours = (COLOURS)(["#explorer-paper", COLUMNS]);
  });
}
""".replace("COLOURS", COLOURS.strip())
SCREEN = """
() => [
  document.querySelector("#explorer-scroll").innerHTML,
  document.querySelector("#explorer-scroll").scrollLeft,
  document.querySelector("#explorer-details").innerHTML,
  document.querySelector("#explorer-paper").childElementCount,
  document.activeElement.ariaLabel,
  ...[...document.querySelectorAll("#explorer canvas")].map((one) => one.toDataURL()),
]
"""


def print_page(page: "Page", name: str, columns: int = 8) -> dict[str, Any]:
    """A4, as a person would print it; what the page was like on it."""
    page.evaluate(LISTEN.replace("COLUMNS", str(columns)))
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.pdf(path=SCREENSHOTS / f"explorer-{name}.pdf", format="A4")
    (printed,) = page.evaluate(
        """async () => {
             for (let wait = 0; wait < 500 && !printed.length; wait++)
               await new Promise((go) => setTimeout(go, 10));
             return printed;
           }"""
    )
    made: dict[str, Any] = printed
    return made


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("parity_check", "0110100110010"),
        ("parity_check", "011010011001011010010"),
        ("parity_check", "01101" * 8),
        ("parity_check", "01101" * 100),
        ("new_modular_arithmetic", "2 - 1 * 2 + 4 * 3 - 3 + 1"),
        ("bucket_sort", "31402" * 25),
    ],
)
def test_nothing_is_cut(visit: Open, file: Path, name: str, text: str) -> None:
    page = visit(file, 1280, "dark").page
    page.emulate_media(color_scheme="dark", reduced_motion="no-preference")
    read(page, text, name)
    flip(page, 4)
    page.locator("#explorer-scroll .explorer-node").nth(4).click()
    word = page.input_value("#explorer-word").replace(" ", "")
    before = page.evaluate(SCREEN)
    assert before[3] == 0
    printed = print_page(page, f"{name}-{len(word)}")
    # the paper less its margins
    assert printed["page"] < 710
    assert printed["ends"] <= printed["page"] - 1
    assert printed["wide"] == [0, 0]
    assert printed["text"].startswith(word)
    assert printed["tokens"] == len(word)
    label = page.locator("#explorer-scroll [aria-current]").get_attribute("aria-label")
    assert printed["selected"] == label
    assert printed["screen"] is False
    assert printed["whole"] == "avoid"
    assert printed["moves"] == 0
    assert page.evaluate(SCREEN) == before


@pytest.mark.parametrize(
    ("name", "text", "columns", "features"),
    [
        ("parity_check", "0110100110010", 8, 35 * 48),
        ("new_even_pairs", "01101" * 100, 1, 1487 * 32),
    ],
)
def test_paper_is_white(
    visit: Open, file: Path, name: str, text: str, columns: int, features: int
) -> None:
    """Colours that are not strong are near white, whatever the screen has; no node is left out."""
    page = visit(file, 1280, "dark").page
    read(page, text, name)
    print_page(page, f"dark-{len(text)}", columns)
    brightest = [max(one) for node in page.evaluate("colours") for one in node]
    assert len(brightest) == features
    assert max(brightest) >= 240
    # the ends are a dark blue and a dark orange
    assert min(brightest) >= 150


def test_a_page_that_is_printed_again_is_drawn_again(page: "Page") -> None:
    read(page, "01")
    assert print_page(page, "short")["text"] == "01∅"
    page.fill("#explorer-word", "011")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#explorer-paper .explorer-tokens").text_content() == "011∅"
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("#explorer-paper *").count() == 0


def test_a_screen_that_becomes_paper_for_a_while_keeps_its_place(page: "Page") -> None:
    read(page, "01101" * 30)
    page.locator("#explorer-scroll .explorer-node").nth(4).click()
    before = page.evaluate(SCREEN)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    for media in ("print", "screen"):
        page.emulate_media(media=media)
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    after = page.evaluate(SCREEN)
    # a browser forgets of what it has hidden where it is scrolled, and what had the focus
    assert [*after[:1], *after[2:4], *after[5:]] == [*before[:1], *before[2:4], *before[5:]]
