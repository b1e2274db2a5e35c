"""What a person can do with the explorer, and what it says then."""

import re
from typing import TYPE_CHECKING

import pytest

from prlstm import models, tasks
from prlstm.models.inspection import inspect
from prlstm.report.explorer.embedded import KNOWN
from tests.browser.explorer.conftest import HOSTILE, expect, said

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser


def test_typing_a_long_word_leaves_the_page_alive(page: "Page") -> None:
    page.select_option("#explorer-model", "new_bucket_sort")
    page.fill("#explorer-word", "3210423" * 18)
    # the tree is there, its prefixes still to come
    expect(page.locator(".explorer-token")).to_have_count(126)
    page.press("#explorer-word", "End")
    page.keyboard.type("1")
    expect(page.locator(".explorer-token")).to_have_count(127)
    expect(page.locator("#explorer-progress")).to_have_text("", timeout=60_000)
    expect(page.locator("#explorer-answers tbody tr")).to_have_count(127)


def test_the_longest_word_with_many_answers(page: "Page") -> None:
    """It has its tree and its answer; of its prefixes some are answered, and that is said."""
    page.select_option("#explorer-model", "bucket_sort")
    page.fill("#explorer-length", "500")
    page.get_by_role("button", name="Random word").click()
    expect(page.locator(".explorer-token")).to_have_count(500)
    expect(page.locator("#explorer-scroll .explorer-outcomes span").last).not_to_have_text("")
    expect(page.locator("#explorer-progress")).to_have_text(
        "The first 128 of 500 prefixes are answered: each has as many answers as tokens.",
        timeout=60_000,
    )
    expect(page.locator("#explorer-answers tbody tr")).to_have_count(128)
    page.fill("#explorer-word", "1" * 501)
    expect(page.get_by_role("alert")).to_contain_text("up to 500 here")


def test_a_flip_lights_the_nodes_that_change(page: "Page") -> None:
    page.fill("#explorer-word", "0110100110010")
    page.locator(".explorer-token").nth(4).click()
    assert page.input_value("#explorer-word") == "0110000110010"
    before, after = (
        inspect(models.load("parity_check"), tasks.get("parity_check").read(text)).sweep
        for text in ("0110100110010", "0110000110010")
    )
    pairs = [
        (old[0][0], new[0][0])
        for old, new in zip(
            [*before.blocks, *before.prefixes[:1]],
            [*after.blocks, *after.prefixes[:1]],
            strict=True,
        )
    ]
    # a prefix of a power of two is the block itself
    changed = sum(int(((old - new).norm(dim=-1) > 1e-5).sum()) for old, new in pairs) - 1
    count = 14 + before.plan.merges
    assert said(page) == (
        f"Token 5 flipped from 1 to 0: {changed} of {count} nodes changed, "
        "the answer changed from 0 to 1, which is right."
    )
    assert page.locator(".explorer-changed").count() == changed
    assert page.locator(".explorer-faded").count() == count - changed
    assert "Token 5" in str(page.evaluate("document.activeElement.ariaLabel"))
    page.click("#explorer-plain")
    assert page.locator(".explorer-changed, .explorer-faded").count() == 0
    assert "Token 5" in str(page.evaluate("document.activeElement.ariaLabel"))


def test_undo_goes_back_step_by_step(page: "Page") -> None:
    page.fill("#explorer-word", "01")
    page.locator(".explorer-token").nth(0).click()
    page.fill("#explorer-length", "9")
    page.get_by_role("button", name="Random word").click()
    assert len(page.input_value("#explorer-word")) == 9
    first = []
    for _ in range(4):
        page.focus("#explorer-undo")
        page.keyboard.press("Enter")
        first.append(page.input_value("#explorer-word"))
    # the last one has nothing to undo
    assert first == ["11", "01", "0110100110010", "0110100110010"]
    assert said(page).startswith("Undone. 13 tokens")


def test_no_press_of_undo_is_dead(page: "Page") -> None:
    start = page.input_value("#explorer-word")
    undo = page.get_by_role("button", name="Undo")
    page.fill("#explorer-word", "01x")
    page.get_by_role("button", name="Random word").click()
    undo.click()
    assert page.input_value("#explorer-word") == start
    assert undo.get_attribute("aria-disabled") == "true"
    # typed, and typed back
    page.fill("#explorer-word", "01")
    assert undo.get_attribute("aria-disabled") == "false"
    page.fill("#explorer-word", start)
    assert undo.get_attribute("aria-disabled") == "true"
    page.fill("#explorer-word", "0")
    undo.click()
    assert page.input_value("#explorer-word") == start


def test_a_length_that_no_word_has_is_said(page: "Page") -> None:
    page.select_option("#explorer-model", "modular_arithmetic")
    for length, first in (
        ("4", "Modular Arithmetic (Simple) has no word of length 4. 3 "),
        ("3", "3 "),
    ):
        page.fill("#explorer-length", length)
        page.get_by_role("button", name="Random word").click()
        assert said(page).startswith(f"{first}tokens, ")


def test_the_sign_of_an_empty_cell_is_in_no_alphabet(page: "Page") -> None:
    for name in KNOWN:
        page.select_option("#explorer-model", name)
        sign = page.locator("#explorer-scroll .explorer-cell").first.inner_text()
        assert sign not in page.locator("#explorer-alphabet code").all_inner_texts()
        assert sign in page.locator(".explorer-legend").inner_text()
        assert page.locator("#explorer-details dd code").inner_text().endswith(sign)


def test_a_narrow_token_is_as_high_as_there_is_room(page: "Page") -> None:
    page.fill("#explorer-word", "01" * 40)
    expect(page.locator(".explorer-token")).to_have_count(80)
    page.locator(".explorer-outcomes span").nth(3).scroll_into_view_if_needed()
    box = page.locator(".explorer-token").nth(3).bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] + 6)
    expect(page.locator("#explorer-said")).to_contain_text("Token 4 flipped")


def test_names_of_models_are_not_cut(page: "Page") -> None:
    cut = page.locator("#explorer-model").evaluate(
        """(list) => {
          const width = list.offsetWidth;
          list.style.width = "max-content";
          return list.offsetWidth - width;
        }"""
    )
    assert cut <= 0


def test_keys_alone_do_everything(page: "Page") -> None:
    page.focus("#explorer-undo")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.ariaLabel") == "Token 1: 0, flip to 1"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert said(page).startswith("Token 2 flipped from 1 to 0")
    page.keyboard.press("End")
    page.keyboard.press("Space")
    assert said(page).startswith("Token 13 flipped from 0 to 1")
    page.keyboard.press("Home")
    assert str(page.evaluate("document.activeElement.ariaLabel")).startswith("Token 1:")

    def at(key: str) -> str:
        page.keyboard.press(key)
        label = str(page.evaluate("document.activeElement.ariaLabel"))
        assert page.locator("#explorer-node").inner_text() == label.split(", norm")[0]
        return label.split(", norm")[0]

    # one stop for all nodes, then arrows; 14 cells are 8 and 4 and 2
    page.keyboard.press("Tab")
    assert at("ArrowRight") == "State after the empty cell"
    assert at("ArrowUp") == "Block of token 13 to the empty cell"
    assert at("ArrowUp") == "Leaf of the empty cell"
    assert at("Home") == "Leaf of token 1"
    assert at("ArrowDown") == "Block of tokens 1 to 2"
    assert at("ArrowRight") == "Block of tokens 3 to 4"
    assert at("ArrowDown") == "Block of tokens 1 to 4"
    assert at("ArrowUp") == "Block of tokens 3 to 4"
    assert at("ArrowLeft") == "Block of tokens 1 to 2"
    assert at("End") == "Block of token 13 to the empty cell"


def test_a_node_shows_what_it_is(page: "Page") -> None:
    page.fill("#explorer-word", "0110")
    page.get_by_role("button", name=re.compile("^Block of tokens 3 to 4, norm")).click()
    details = page.locator("#explorer-details")
    expect(details.locator("h3")).to_have_text("Block of tokens 3 to 4")
    expect(details.locator("dd").first).to_have_text("10")
    h, c = inspect(models.load("parity_check").double(), [0, 1, 1, 0]).block(1, 1)
    expect(details.locator("dd").nth(1)).to_have_text(f"{float(h.norm()):.2f}")
    expect(details.locator("dd").nth(2)).to_have_text(f"{float(c.norm()):.2f}")
    assert f"{float(h.norm()):.2f}" != f"{float(c.norm()):.2f}"
    details.get_by_role("button", name="Leaf of token 4").click()
    expect(details.locator("h3")).to_have_text("Leaf of token 4")


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("", "Type a word of Parity Check, or draw a random one. The alphabet is: 0 1"),
        ("   ", "Type a word of Parity Check"),
        ("01a1", "“a” is not in the alphabet of Parity Check, which is: 0 1"),
        (HOSTILE, "“<” is not in the alphabet"),
        ("😀1", "“😀” is not in the alphabet"),
        ("01" * 251, "This word has 502 tokens. The explorer reads up to 500 here."),
        ("1" * 100_000, "This word has 100,000 tokens."),
    ],
)
def test_what_is_no_word_gets_a_friendly_message(page: "Page", text: str, advice: str) -> None:
    page.fill("#explorer-word", text + "x")
    page.fill("#explorer-word", text)
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text(advice)
    assert page.get_attribute("#explorer-word", "aria-invalid") == "true"
    assert page.locator("#explorer-outcome").evaluate("box => box.inert")
    page.fill("#explorer-word", "0111")
    expect(alert).to_have_text("")
    assert page.get_attribute("#explorer-word", "aria-invalid") == "false"
    assert said(page).startswith("4 tokens")


# the advice of the page, not the browser's
@pytest.mark.parametrize("length", ["", "0", "-3", "501", "2.5"])
def test_no_word_is_drawn_of_a_length_that_is_none(page: "Page", length: str) -> None:
    before = page.input_value("#explorer-word")
    page.fill("#explorer-length", length)
    page.get_by_role("button", name="Random word").click()
    expect(page.get_by_role("alert")).to_contain_text("from 1 to 500 tokens")
    assert page.input_value("#explorer-word") == before


def test_another_model_keeps_a_word_of_its_language(page: "Page") -> None:
    page.fill("#explorer-word", "0101")
    page.select_option("#explorer-model", "new_even_pairs")
    assert page.input_value("#explorer-word") == "0101"
    page.select_option("#explorer-model", "new_modular_arithmetic")
    assert page.input_value("#explorer-word") == "2 - 1 * 2 + 4 * 3 - 3 + 1"
    page.locator(".explorer-token").nth(1).click()
    assert page.input_value("#explorer-word").startswith("2 * 1 * 2")
    page.select_option("#explorer-model", HOSTILE)
    assert page.locator("#explorer img").count() == 0
    assert said(page).startswith("13 tokens")
