"""What the page computes is what Python computes, in float64 on both sides."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from prlstm import models, tasks
from prlstm.models.inspection import inspect
from prlstm.report.explorer.embedded import KNOWN, MOST_ANSWERED
from tests.browser.explorer.conftest import expect, state_of

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

STRINGS = 50
# two lengths beside the many short ones
LONGEST = {"modular_arithmetic": (201, 499)}
# what is wanted is 1e-4; that much would hide a sum of 32 bits
CLOSE = {"rtol": 0.0, "atol": 1e-8}


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
    model = models.load(folders[name]).double()
    spread = []
    for word in words_of(model.task):
        got = asked(page, name, model.task.show(word))
        assert got["word"] == word
        with torch.no_grad():
            want = model(torch.tensor([word]))[0]
        assert want.dtype == torch.float64
        torch.testing.assert_close(torch.tensor(got["logits"], dtype=torch.float64), want, **CLOSE)
        seen = inspect(model, word)
        assert len(got["nodes"]) == len(seen.cells) + seen.sweep.plan.merges
        for node in got["nodes"]:
            h = state_of(seen, node["start"], node["stop"])[0]
            torch.testing.assert_close(torch.tensor(node["h"], dtype=h.dtype), h, **CLOSE)
        answered = len(word) if model.task.single_output else min(len(word), MOST_ANSWERED)
        assert len(got["answers"]) == answered
        for mine, theirs in zip(got["answers"], seen.answers[:answered], strict=True):
            assert mine["truth"] == theirs.truth
            assert mine["sure"] == pytest.approx(min(theirs.sure), abs=CLOSE["atol"])
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
