"""The documents in a browser: all of it comes from the site, and light and dark can be chosen."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
NARROW = 400


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *said: object) -> None:
        """Nobody reads it."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_every_page_is_whole_and_stays_at_home(browser: Browser, site: Path, address: str) -> None:
    page = browser.new_page(viewport={"width": NARROW, "height": 800})
    wrong: list[str] = []
    asked: list[str] = []
    page.on("pageerror", lambda error: wrong.append(f"{page.url}: {error}"))
    page.on("request", lambda one: asked.append(one.url))
    page.on("response", lambda one: one.status < 400 or wrong.append(one.url))
    for path in sorted(site.rglob("*.html")):
        page.goto(address + str(path.relative_to(site)), wait_until="load")
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= NARROW, f"{path.name}: {width} pixels wide, {NARROW} are there"
        broken = page.evaluate("[...document.images].filter(one => !one.naturalWidth).length")
        assert broken == 0, path.name
    page.close()
    assert wrong == []
    assert [one for one in asked if not one.startswith((address, "data:"))] == []


def test_light_and_dark_can_be_chosen(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
    page.goto(f"{address}tree.html")
    light = page.locator("img").first.screenshot()
    assert page.locator("html").get_attribute("data-bs-theme") == "light"
    page.click("#theme-menu")
    page.click("[data-bs-theme-value=dark]")
    assert page.locator("html").get_attribute("data-bs-theme") == "dark"
    # the drawing follows the page, not the system
    assert page.locator("img").first.screenshot() != light
    page.close()


def test_words_are_found(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    with page.expect_console_message(lambda said: "search ready" in said.text):
        page.goto(f"{address}index.html")
    page.click("[data-bs-target='#mkdocs_search_modal'] >> visible=true")
    page.locator("#mkdocs-search-query").press_sequentially("binary counter", delay=20)
    page.locator("#mkdocs-search-results a[href*='tree.html']").first.wait_for(timeout=10_000)
    page.close()


def test_a_page_may_be_opened_as_a_file(browser: Browser, site: Path) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto((site / "index.html").as_uri())
    # its index could not be read there
    assert page.locator("[data-bs-target='#mkdocs_search_modal']").first.is_hidden()
    page.click("text=A guide")
    assert "guide.html" in page.url
    page.close()
