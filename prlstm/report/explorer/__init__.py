"""The tree explorer: a part of the report's page that runs small models in the browser.

A reader picks a model and a word, and sees the tree that was computed: every state, the answer
after every prefix, and what a flipped token changes. Weights and code are in the page.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prlstm.models.shipping import FOLDER, shipped
from prlstm.report.explorer.embedded import embedded

HERE = Path(__file__).parent
# what a reader sees before any choice: the documents begin with it too
FIRST = "parity_check"
# one idea each, in the order in which they are joined: what is used stands before what uses it
SCRIPTS = (
    "tasks.js", "words.js", "model.js", "tree.js", "reading.js",
    "elements.js", "colours.js", "layout.js", "heat.js", "tokens.js",
    "tree_view.js", "details.js", "answers.js", "page.js",
)  # fmt: skip


@dataclass(frozen=True)
class ExplorerSection:
    """What a page puts in: `html` in its body, `css` in a style, `script` in a script behind it."""

    html: str
    css: str
    script: str


def explorer_section(folders: Sequence[Path | str] | None = None) -> ExplorerSection:
    """The explorer of some models, each in a folder; of those that come with the package if none.

    Every id, class and variable of the style begins with `explorer`. Colours and fonts are the
    page's: `--ground`, `--raised`, `--ink`, `--quiet`, `--line`, `--accent`, `--right`, `--wrong`,
    `--mono`, `--sans`.
    """
    if folders is None:
        folders = [FOLDER / name for name in sorted(shipped(), key=lambda name: name != FIRST)]
    paths = list(map(Path, folders))
    if not paths:
        raise ValueError("folders=[]: expected at least one folder with a model")
    names = [path.name for path in paths]
    if len(set(names)) < len(names):
        raise ValueError(f"folders={names}: expected names that differ, they stand in one list")
    models = json.dumps([embedded(path) for path in paths], ensure_ascii=True)
    # a page ends a script at its first </, wherever it stands
    for sign in "<>&":
        models = models.replace(sign, f"\\u{ord(sign):04x}")
    data = f'<script type="application/json" id="explorer-models">{models}</script>\n'
    parts = "\n".join((HERE / name).read_text() for name in SCRIPTS)
    return ExplorerSection(
        html=(HERE / "explorer.html").read_text() + data,
        css=(HERE / "explorer.css").read_text(),
        script=f'(() => {{\n"use strict";\n{parts}}})();\n',
    )
