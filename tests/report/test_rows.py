"""Rows are only ever added, and those of another schema are refused."""

from pathlib import Path

import pytest

from prlstm.files import append_rows
from prlstm.report.rows import append_results, read_results


def test_rows_carry_their_schema(tmp_path: Path) -> None:
    path = tmp_path / "new" / "rows.jsonl"
    assert read_results(path) == []
    append_results(path, [{"a": 1}])
    append_results(path, [{"a": 2}])
    assert read_results(path) == [{"schema": 1, "a": 1}, {"schema": 1, "a": 2}]


@pytest.mark.parametrize("schema", [0, 2, "1", None])
def test_rows_of_another_schema_are_refused(tmp_path: Path, schema: object) -> None:
    path = tmp_path / "rows.jsonl"
    append_rows(path, [{"schema": 1}, {"schema": schema}])
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"rows.jsonl, line 2: schema=.*expected 1"):
        read_results(path)
    with pytest.raises(ValueError, match="expected 1"):
        append_results(path, [{"a": 1}])
    assert path.read_bytes() == before
