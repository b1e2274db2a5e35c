"""The page with the models that come with the package, and with some as they were drawn."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from prlstm import models
from prlstm.models.inspection import Inspection
from prlstm.models.shipping import FOLDER
from prlstm.report.explorer import explorer_section
from prlstm.report.explorer.embedded import KNOWN
from prlstm.report.page import build_page
from tests.browser.conftest import Open
from tests.report.explorer_models import untrained

if TYPE_CHECKING:
    from playwright.sync_api import Locator, LocatorAssertions, Page

# beside those that are trained, some as they were drawn; sizes with and without a rest of 8
UNTRAINED = dict(zip(KNOWN, (32, 17, 40, 24, 33, 48), strict=True))
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
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


def said(page: "Page") -> str:
    return page.locator("#explorer-said").inner_text()


def read(page: "Page", text: str, model: str | None = None) -> None:
    """Type a word, and wait until every prefix has been answered."""
    if model is not None:
        page.select_option("#explorer-model", model)
    page.fill("#explorer-word", text)
    expect(rows(page)).to_have_count(len(text.replace(" ", "")), timeout=60_000)


def flip(page: "Page", place: int) -> None:
    """Flip a token, and wait until every prefix has been answered."""
    count = rows(page).count()
    page.locator("#explorer-scroll .explorer-token").nth(place).click()
    expect(page.locator("#explorer-said")).to_contain_text(f"Token {place + 1} flipped")
    expect(rows(page)).to_have_count(count, timeout=60_000)


def rows(page: "Page") -> "Locator":
    return page.locator("#explorer-answers tbody tr")


def state_of(seen: Inspection, start: int, stop: int) -> tuple[torch.Tensor, ...]:
    """The node that covers these cells, h and c: a prefix, or a block of a power of two."""
    size = stop - start + 1
    if size & (size - 1):
        assert start == 1
        return seen.prefix(stop)
    return seen.block(size.bit_length() - 1, (start - 1) // size)
