"""The documents as a site: it builds without a warning, and asks the network for nothing."""

import re
import runpy
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from prlstm.report.scene import Line, Scene, Words

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
# attributes by which a page loads something; where a link leads is the reader's choice
LOADED = {"src", "srcset", "data", "poster"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    # warnings count where they are not silenced
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Loads(HTMLParser):
    """Everything that a page loads by itself."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and (name in LOADED or (tag == "link" and name == "href")):
                self.found.append(value)


def test_no_page_asks_the_network_for_anything(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert {"index.html", "guide.html", "tree.html", "cli.html"} <= {page.name for page in pages}
    for page in pages:
        loads = Loads(page.read_text()).found
        assert any(one.endswith("site.css") for one in loads)
        # only the page of errors names places from the top of the site
        top = site if page.name == "404.html" else page.parent
        for one in loads:
            assert (top / one.lstrip("/")).is_file(), f"{page}: {one}"


def test_no_style_sheet_and_no_drawing_does_either(site: Path) -> None:
    for path in [*site.rglob("*.css"), *site.rglob("*.svg")]:
        text = path.read_text()
        assert not re.search(r"url\(\W*(https?:)?//|@import|<script|href=(?!\"#)", text), path


def test_sources_stay_at_home(site: Path) -> None:
    assert not list(site.rglob("*.py"))
    assert (site / "repository" / "examples" / "parity.py.html").is_file()


def test_code_is_coloured_when_the_site_is_built(site: Path) -> None:
    page = (site / "guide.html").read_text()
    assert '<span class="kn">import</span>' in page
    assert "highlight.min.js" not in page


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    sys.path.insert(0, str(DOCS))
    try:
        return runpy.run_path(str(DOCS / "drawings.py"))
    finally:
        sys.path.remove(str(DOCS))


def test_drawings_are_those_that_the_code_makes(made: dict[str, Any]) -> None:
    drawings: dict[str, str] = made["drawings"]()
    assert {path.name for path in (DOCS / "drawings").iterdir()} == set(drawings)
    for name, text in drawings.items():
        assert (DOCS / "drawings" / name).read_text() == text, "run `python docs/drawings.py`"
        assert len(text) < 20_000


def test_drawings_are_whole(made: dict[str, Any]) -> None:
    for name, text in made["drawings"]().items():
        root = ElementTree.fromstring(text)
        assert root.find("{*}title") is not None, name
        width, height = map(float, root.attrib["viewBox"].split()[2:])
        for one in root.iter("{http://www.w3.org/2000/svg}text"):
            assert 0 <= float(one.attrib["x"]) <= width, name
            assert 0 <= float(one.attrib["y"]) <= height, name


def test_lines_and_words_are_seen_on_dark_pages(made: dict[str, Any]) -> None:
    """Each of their colours has one for dark pages, far enough from the paper."""
    dark: dict[str, str] = sys.modules["svg"].DARK
    scenes: list[Scene] = [
        made["stream_scene"](13),
        made["borders_scene"](64),
        made["blocks_scene"](),
        made["tree_scene"](made["Plan"](13)),
    ]
    for scene in scenes:
        for shape in scene.shapes:
            if isinstance(shape, Line | Words):
                assert shape.colour in dark
    assert contrast(dark["#000000"], dark["#ffffff"]) > 10
    assert contrast(dark["#4a4a4a"], dark["#ffffff"]) > 7
    assert contrast(dark["#767676"], dark["#ffffff"]) > 4.5


def contrast(one: str, other: str) -> float:
    """Of two colours, as accessibility guidelines count it."""

    def light(colour: str) -> float:
        parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_a_stream_is_drawn_as_a_binary_counter(made: dict[str, Any]) -> None:
    said = [one.words for one in made["stream_scene"](7).shapes if getattr(one, "words", "")]
    after_seven = said[said.index("7") :]
    assert set(after_seven) == {"7", "1-4", "5-6", "111"}
