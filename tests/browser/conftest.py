"""A real browser for the tests of the page; what it shows is kept as pictures."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

# as distributions call it
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
SCREENSHOTS = Path(__file__).parent.parent.parent / "build" / "screenshots"
Scheme = Literal["light", "dark"]


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    executable = next(filter(None, map(shutil.which, NAMES)), None)
    if executable is None:
        pytest.fail(
            f"NO BROWSER: none of {', '.join(NAMES)} is on the path, so the report's page is not "
            "tested. On Debian: apt-get install chromium",
            pytrace=False,
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable, args=list(ARGUMENTS))
        yield started
        started.close()


class Visit:
    """A page that is open: what went wrong in it, and what it asked for."""

    def __init__(self, context: "BrowserContext") -> None:
        self.page: Page = context.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _hear(self, message: object) -> None:
        if message.type in ("error", "warning"):  # type: ignore[attr-defined]
            self.errors.append(message.text)  # type: ignore[attr-defined]

    def screenshot(self, name: str, part: str | None = None) -> Path:
        """A picture of what is in the window, or of a part of the page by its selector."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        (self.page if part is None else self.page.locator(part)).screenshot(path=path)
        return path

    @property
    def sideways(self) -> int:
        """By how many pixels the page is wider than its window."""
        asked = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return int(self.page.evaluate(asked))

    def check(self) -> None:
        """Nothing went wrong, and nothing was asked of a network."""
        assert self.errors == []
        assert [
            url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))
        ] == []


Open = Callable[..., Visit]


@pytest.fixture
def visit(browser: "Browser") -> Iterator[Open]:
    """Open a file: `visit(path, width, scheme)`. At the end every page is checked."""
    visits: list[Visit] = []
    contexts: list[BrowserContext] = []

    def opened(path: Path, width: int = 1280, scheme: Scheme = "light") -> Visit:
        contexts.append(
            browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        )
        visits.append(Visit(contexts[-1]))
        visits[-1].page.goto(path.resolve().as_uri())
        return visits[-1]

    yield opened
    for one in visits:
        one.check()
    for context in contexts:
        context.close()


@pytest.fixture
def page(browser: "Browser") -> "Iterator[Page]":
    """An empty page; at the end it is checked."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    one = Visit(context)
    yield one.page
    one.check()
    context.close()
