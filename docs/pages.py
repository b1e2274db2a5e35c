"""What the site has beyond `docs/`: files of the repository that the documents link to, as pages.

MkDocs calls these functions (`hooks` in `mkdocs.yml`). In the repository a document links to
`../examples/parity.py`; on the site that is a page, `repository/examples/parity.py.html`.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
DOCS = "docs/"
FOLDER = "repository/"
LANGUAGES = {".py": "python", ".json": "json"}
# [words](path#heading); what has a scheme or is an anchor alone is no path
LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for every file outside of `docs/` that a document leads to."""
    waiting = [DOCS + file.src_uri for file in files.documentation_pages()]
    seen: set[str] = set()
    while waiting:
        here = waiting.pop()
        for path in _linked(here) - seen:
            seen.add(path)
            files.append(File.generated(config, _on_site(path), content=_page(path)))
            waiting.append(path)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links between files of the repository become links between pages."""
    place = page.file.src_uri
    here = place.removeprefix(FOLDER) if place.startswith(FOLDER) else DOCS + place

    def led(found: re.Match[str]) -> str:
        path = _path(here, found[1])
        if path is None:
            return found[0]
        return f"]({posixpath.relpath(_on_site(path), posixpath.dirname(place))}{found[2] or ''})"

    return LINK.sub(led, markdown)


def _linked(here: str) -> set[str]:
    """Files outside of `docs/` that a document links to; code links to nothing."""
    if not here.endswith(".md"):
        return set()
    paths = {_path(here, found[1]) for found in LINK.finditer((ROOT / here).read_text())}
    return {path for path in paths if path is not None and _on_site(path).startswith(FOLDER)}


def _path(here: str, target: str) -> str | None:
    """The file that a link in `here` means, if there is one: code may look like a link."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
    return path if (ROOT / path).is_file() else None


def _on_site(path: str) -> str:
    """Where a file of the repository stands among the sources of the site."""
    if path.startswith(DOCS) and not path.endswith(".py"):
        return path.removeprefix(DOCS)
    return FOLDER + path + ("" if path.endswith(".md") else ".md")


def _page(path: str) -> str:
    """A document as it is; code as a page that shows it."""
    text = (ROOT / path).read_text()
    if path.endswith(".md"):
        return text
    language = LANGUAGES.get(Path(path).suffix, "text")
    return f"# {path}\n\n```{language}\n{text}```\n"
