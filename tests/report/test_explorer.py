import base64
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from prlstm import models, tasks
from prlstm.report.explorer import ExplorerSection, explorer_section
from prlstm.report.explorer.embedded import KNOWN
from tests.report.explorer_models import untrained

VARIABLES = {
    "ground", "raised", "ink", "quiet", "line", "accent", "right", "wrong", "mono", "sans",
}  # fmt: skip


def data_of(section: ExplorerSection) -> list[dict[str, object]]:
    found = re.search(r'id="explorer-models">(.*?)</script>', section.html, re.S)
    assert found
    made: list[dict[str, object]] = json.loads(found[1])
    return made


def test_the_models_that_come_with_the_package_are_in_it() -> None:
    section = explorer_section()
    names = [one["name"] for one in data_of(section)]
    assert names[0] == "parity_check"
    assert sorted(names) == models.shipped()
    assert len(section.html) + len(section.css) + len(section.script) < 5_000_000


@pytest.mark.parametrize("name", KNOWN)
def test_weights_are_those_of_the_model(tmp_path: Path, name: str) -> None:
    (one,) = data_of(explorer_section([untrained(tmp_path, name, 17)]))
    state = models.load(tmp_path / name).state_dict()
    values = np.frombuffer(base64.b64decode(str(one["weights"])), "<f4")
    want = torch.cat([weight.flatten() for weight in state.values()]).numpy()
    np.testing.assert_array_equal(values, want)
    assert one["shapes"] == [list(weight.shape) for weight in state.values()]
    task = tasks.get(name)
    assert (one["symbols"], one["answers"]) == (list(task.symbols), list(task.answer_symbols))


def test_weights_of_half_precision_are_widened(tmp_path: Path) -> None:
    model = models.build("pr_lstm", tasks.get("parity_check"), hidden_size=4, seed=0).half()
    models.save(model, tmp_path / "half")
    (one,) = data_of(explorer_section([tmp_path / "half"]))
    values = np.frombuffer(base64.b64decode(str(one["weights"])), "<f4")
    want = torch.cat([weight.flatten() for weight in model.state_dict().values()]).detach()
    np.testing.assert_array_equal(values, want.float().numpy())


def test_a_name_cannot_leave_its_place(tmp_path: Path) -> None:
    hostile = "<script><!--&\"'\u2028<img src=x onerror=alert(1)>"
    section = explorer_section([untrained(tmp_path, "parity_check", 4, hostile)])
    (one,) = data_of(section)
    assert one["name"] == hostile
    data = section.html[section.html.index('id="explorer-models">') :]
    assert not re.search("<(?!/script>\n)", data)
    assert not re.search("</script|<!--|<script", section.script)
    assert "</style" not in section.css


def test_ids_and_classes_are_its_own_and_colours_the_pages() -> None:
    section = explorer_section()
    named = re.findall(r'\b(?:id|class|for|aria-\w+by)="([^"]*)"', section.html)
    assert named
    for name in " ".join(named).split():
        assert name.startswith("explorer")
    css = re.sub(r"/\*.*?\*/", "", section.css, flags=re.S)
    selectors = re.findall(r"[.#]([a-zA-Z][\w-]*)(?=[^{}]*\{)", css)
    assert all(name.startswith("explorer") for name in selectors)
    used = set(re.findall(r"var\(--([\w-]+)", section.css))
    assert {name for name in used if not name.startswith("explorer-")} <= VARIABLES
    assert not re.findall(r"#[0-9a-f]{3,8}\b", css)


def test_nothing_is_asked_of_a_network() -> None:
    section = explorer_section()
    for text in (section.html, section.css, section.script):
        assert not re.search(r"https?:|fetch\(|XMLHttpRequest|import\(|@import|url\(", text)


def test_what_it_cannot_run_is_refused(tmp_path: Path) -> None:
    parity = tasks.get("parity_check")
    gru = models.build("gru", parity, hidden_size=4, seed=0)
    models.save(gru, tmp_path / "gru")
    with pytest.raises(ValueError, match=r"gru: the explorer runs pr_lstm .* gru, parity_check"):
        explorer_section([tmp_path / "gru"])
    cells = models.build("pr_lstm", parity, hidden_size=4, computation=1, seed=0)
    models.save(cells, tmp_path / "cells")
    with pytest.raises(ValueError, match=r"cells: the explorer runs .* computation=1"):
        explorer_section([tmp_path / "cells"])
    with pytest.raises(ValueError, match="a model for reverse_string, expected one for even_pairs"):
        explorer_section([untrained(tmp_path, "reverse_string", 4)])
    with pytest.raises(ValueError, match="at least one folder"):
        explorer_section([])
    one = untrained(tmp_path / "one", "parity_check", 4)
    with pytest.raises(ValueError, match="expected names that differ"):
        explorer_section([one, one])
    with pytest.raises(FileNotFoundError, match="nowhere"):
        explorer_section([tmp_path / "nowhere"])
