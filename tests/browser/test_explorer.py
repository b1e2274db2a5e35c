"""The explorer in a browser: its numbers against Python's, and what a person can do with it."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from prlstm import models, tasks
from prlstm.models.inspection import inspect
from prlstm.models.shipping import FOLDER
from prlstm.report.explorer import explorer_section
from prlstm.report.explorer.embedded import KNOWN
from prlstm.report.page import build_page
from tests.browser.conftest import Open, Scheme
from tests.browser.test_report import CONTRASTS
from tests.report.explorer_models import untrained

if TYPE_CHECKING:
    from playwright.sync_api import Locator, LocatorAssertions, Page

pytestmark = pytest.mark.browser

STRINGS = 50
# two lengths beside the many short ones
LONGEST = {"bucket_sort": (60, 128), "modular_arithmetic": (201, 499)}
CLOSE = {"rtol": 1e-4, "atol": 1e-4}
# beside those that are trained, some as they were drawn; sizes with and without a rest of 8
UNTRAINED = dict(zip(KNOWN, (32, 17, 40, 24, 33, 48), strict=True))
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    # the first of them is shown before any choice
    made = {name: FOLDER / name for name in ("parity_check", *models.shipped())}
    made |= {
        f"new_{task}": untrained(root, task, size, f"new_{task}")
        for task, size in UNTRAINED.items()
    }
    made[HOSTILE] = untrained(root, "parity_check", 8, HOSTILE)
    return made


@pytest.fixture(scope="module")
def file(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("page")
    (root / "rows").mkdir()
    made = root / "page.html"
    made.write_text(build_page(root / "rows", explorer_section(list(folders.values()))))
    return made


@pytest.fixture
def page(visit: Open, file: Path) -> "Page":
    return visit(file).page


def expect(locator: "Locator") -> "LocatorAssertions":
    """Says what is waited for. Where no browser is wanted, nothing of it is imported."""
    from playwright.sync_api import expect

    return expect(locator)


def words_of(task: tasks.Task, count: int = STRINGS) -> list[list[int]]:
    """Words of the language, and every third time any tokens."""
    generator = torch.Generator().manual_seed(0)
    made = []
    for number in range(count):
        length = int(torch.randint(1, 41, (), generator=generator))
        if number < 2:
            length = LONGEST.get(task.name, (200, 500))[number]
        if number % 3 == 2:
            made.append(torch.randint(task.input_size, (length,), generator=generator).tolist())
        else:
            made.append(task.sample(1, length, generator=generator).input[0].tolist())
    return made


def asked(page: "Page", name: str, text: str) -> dict[str, Any]:
    """What the page computes of a text."""
    made: dict[str, Any] = page.evaluate(
        "([name, text]) => explorer.read(name, text)", [name, text]
    )
    return made


@pytest.mark.parametrize("name", [*models.shipped(), *(f"new_{task}" for task in KNOWN)])
def test_numbers_are_pythons(page: "Page", folders: dict[str, Path], name: str) -> None:
    model = models.load(folders[name])
    spread = []
    for word in words_of(model.task):
        got = asked(page, name, model.task.show(word))
        assert got["word"] == word
        with torch.no_grad():
            want = model(torch.tensor([word]))[0]
        torch.testing.assert_close(torch.tensor(got["logits"]), want, **CLOSE)
        seen = inspect(model, word)
        assert len(got["nodes"]) == len(seen.cells) + seen.sweep.plan.merges
        for node in got["nodes"]:
            size = node["stop"] - node["start"] + 1
            if node["kind"] == "prefix":
                h = seen.prefix(node["stop"])[0]
            else:
                h = seen.block(size.bit_length() - 1, (node["start"] - 1) // size)[0]
            torch.testing.assert_close(torch.tensor(node["h"]), h, **CLOSE)
        assert len(got["answers"]) == len(word)
        for mine, theirs in zip(got["answers"], seen.answers, strict=True):
            assert mine["truth"] == theirs.truth
            assert mine["sure"] == pytest.approx(min(theirs.sure), abs=1e-4)
            # two classes may be as likely as each other
            if min(theirs.sure) > 1 / model.task.output_size + 1e-3:
                assert mine["classes"] == theirs.classes
        spread.append(want.flatten()[0])
    # a model that answers the same to all would tell nothing
    assert torch.stack(spread).std() > 1e-2


@pytest.mark.parametrize("task", KNOWN)
def test_random_words_are_of_the_language(page: "Page", task: str) -> None:
    rules = tasks.get(task)
    lengths = [*range(1, 31)] * 3
    texts = page.evaluate(
        "([name, lengths]) => lengths.map((one) => explorer.draw(name, one))",
        [f"new_{task}", lengths],
    )
    for length, text in zip(lengths, texts, strict=True):
        word = rules.read(text)
        assert (len(word), rules.show(word)) == (rules.input_length(length), text)
        rules.label(word)
    assert len(set(texts)) > 50


@pytest.mark.parametrize(
    "text", ["0 1\t1", "0\x1c1\x85", "\u20281\u3000", "0\ufeff1", "0b1", "٣", "😀", "0\u200b1"]
)
def test_texts_are_read_as_python_reads_them(page: "Page", text: str) -> None:
    task = tasks.get("parity_check")
    try:
        want = task.read(text)
    except ValueError:
        with pytest.raises(Exception, match="is not in the alphabet"):
            asked(page, "parity_check", text)
    else:
        assert asked(page, "parity_check", text)["word"] == want


def test_typing_shows_what_python_says(page: "Page") -> None:
    model = models.load("parity_check")
    for word in words_of(model.task)[2:]:
        page.fill("#explorer-word", model.task.show(word))
        with torch.no_grad():
            answer = int(model(torch.tensor([word])).argmax())
        expect(page.locator("#explorer-answer")).to_have_text(str(answer))
        expect(page.locator("#explorer-answers tbody tr")).to_have_count(len(word))
        last = page.locator("#explorer-answers tbody tr").last
        expect(last.locator("td").first).to_have_text(str(answer))
        expect(last.locator("td").last).to_have_text("✓ right")
        assert page.locator(".explorer-token").count() == len(word)


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


def said(page: "Page") -> str:
    return page.locator("#explorer-said").inner_text()


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
    h = inspect(models.load("parity_check"), [0, 1, 1, 0]).block(1, 1)[0]
    expect(details.locator("dd").nth(1)).to_have_text(f"{float(h.norm()):.2f}")
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


@pytest.mark.parametrize("length", ["", "0", "-3", "501", "2.5"])
def test_no_word_is_drawn_of_a_length_that_is_none(page: "Page", length: str) -> None:
    before = page.input_value("#explorer-word")
    page.fill("#explorer-length", length)
    page.locator("#explorer-form").evaluate("form => (form.noValidate = true)")
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


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_legible_in_both_schemes_and_on_narrow_screens(
    visit: Open, file: Path, scheme: Scheme, width: int
) -> None:
    there = visit(file, width, scheme)
    page = there.page
    page.emulate_media(reduced_motion="reduce", color_scheme=scheme)

    def look(name: str) -> None:
        expect(page.locator("#explorer-progress")).to_have_text("")
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
