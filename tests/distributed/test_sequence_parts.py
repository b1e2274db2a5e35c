"""How a sequence is cut, and what the ranks' blocks make up: integers and symbols, one process."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st

from prlstm import PRLSTM
from prlstm.distributed import SplitSequence, partition
from prlstm.distributed.sequence.parts import MOST_PIECES, UNEVEN, all_pieces, pieces
from prlstm.distributed.sequence.ranks import HEADER, Ranks, _disagreement
from prlstm.distributed.sequence.roots import extended
from prlstm.tree import Carry, Node, tree_extend
from tests.compare import assert_rel
from tests.distributed.sequence_ranks import ROOT
from tests.tree.symbols import Symbols

worlds = st.integers(1, 1024)


@given(st.integers(1, 10**10), worlds)
def test_parts_are_even_and_made_of_few_blocks(length: int, world: int) -> None:
    world = min(world, length)
    parts = partition(length, world)
    assert (parts[0].start, parts[-1].stop, len(parts)) == (0, length, world)
    assert all(a.stop == b.start for a, b in pairwise(parts))
    sizes = [len(part) for part in parts]
    assert min(sizes) >= 1
    assert max(sizes) <= max(UNEVEN * length / world, -(-length // world))
    assert max(map(len, all_pieces(sizes))) <= MOST_PIECES


@given(st.integers(1, 10**6), worlds, st.integers(1, 20))
def test_longer_parts_are_made_of_as_many_blocks(length: int, world: int, doublings: int) -> None:
    world = min(world, length)
    parts = [partition(n, world) for n in (length, length << doublings)]
    # but where parts of a few tokens could not be even
    if length >= 16 * world:
        few, many = (max(map(len, all_pieces([len(part) for part in p]))) for p in parts)
        assert few == many


@given(st.integers(0, 2000), st.integers(1, 2000), st.booleans())
def test_pieces_are_blocks_of_the_tree(start: int, length: int, is_last: bool) -> None:
    found = pieces(start, start + length, is_last=is_last)
    assert found[0].start == start
    assert found[-1].stop == start + length
    for piece, after in zip(found, [*found[1:], None], strict=True):
        assert piece.start % (1 << piece.level) == 0
        assert 1 <= len(piece) <= 1 << piece.level
        assert after is None or piece.stop == after.start
        assert piece.is_whole or (is_last and after is None)


@given(st.integers(0, 300), st.lists(st.integers(1, 100), min_size=1, max_size=6))
def test_roots_make_up_the_carry_of_a_stream(seen: int, lengths: list[int]) -> None:
    symbols = Symbols()
    leaves: Node = (torch.arange(seen + sum(lengths))[None],)

    def carry(count: int) -> Carry:
        return tree_extend(symbols.merge, _cut(leaves, 0, count))[1] if count else Carry()

    start, roots = seen, []
    for length in lengths:
        for piece in pieces(start, start + length, is_last=False):
            ends, _ = tree_extend(symbols.merge, _cut(leaves, piece.start, piece.stop))
            roots.append((piece.level, tuple(t[:, -1:] for t in ends)))
        start += length
    got, want = extended(symbols.merge, carry(seen), roots), carry(start)
    assert got.count == want.count
    for mine, other in ((got.blocks, want.blocks), (got.folds, want.folds)):
        assert [None if n is None else n[0].tolist() for n in mine] == [
            None if n is None else n[0].tolist() for n in other
        ]


def _cut(leaves: Node, start: int, stop: int) -> Node:
    return tuple(t[:, start:stop] for t in leaves)


def test_a_world_that_does_not_fit_is_named() -> None:
    with pytest.raises(ValueError, match="world=4: expected at most length=3"):
        partition(3, 4)
    with pytest.raises(ValueError, match="length=0: expected an integer >= 1"):
        partition(0, 1)
    said = r"parts of 511, 513 tokens: part 0 .* 9 blocks.*partition\(1024, 2\) .* \(512, 512\)"
    with pytest.raises(ValueError, match=said):
        all_pieces([511, 513])


def test_what_cannot_be_split_is_named() -> None:
    with pytest.raises(RuntimeError, match="has no process group: expected a call of"):
        SplitSequence(PRLSTM(3, 4))
    with pytest.raises(ValueError, match="expected bidirectional=False"):
        SplitSequence(PRLSTM(3, 4, bidirectional=True))
    with pytest.raises(TypeError, match="layer is a LSTM: expected a PRLSTM"):
        SplitSequence(torch.nn.LSTM(3, 4))  # type: ignore[arg-type]


@pytest.fixture
def alone() -> Iterator[None]:
    """A group of this process only."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("said", ["short", 'quotes "' * 200, "Größe, größer " * 100])
def test_a_refusal_is_told_whole(said: str) -> None:
    ranks, cpu = Ranks(), torch.device("cpu")
    assert ranks.agree(7, {"cell": said}, cpu) == [7]
    assert ranks.sent_bytes == HEADER == 32
    with pytest.raises(ValueError, match=re.escape(f"rank 0 refused: {said}")):
        ranks.agree(0, ValueError(said), cpu)


def test_a_disagreement_names_what_differs() -> None:
    said = [{"a": 1, "b": 2}, {"b": 2, "c": 3}, {"a": 1, "b": 5}]
    assert str(_disagreement(said)) == (  # type: ignore[arg-type]
        "ranks disagree: a=1 on rank 0, a=nothing on rank 1; b=2 on rank 0, b=5 on rank 2; "
        "c=nothing on rank 0, c=3 on rank 1; expected the same on every rank"
    )
    many = [{f"weight {n}": f"({n + more},)" for n in range(9)} for more in (0, 1)]
    assert "weight 2=(2,) on rank 0, weight 2=(3,) on rank 1; and 6 more; expected" in str(
        _disagreement(many)  # type: ignore[arg-type]
    )


@pytest.mark.usefixtures("alone")
def test_dropout_acts_between_layers() -> None:
    layer, x = PRLSTM(3, 16, 3, dropout=0.5, batch_first=True), torch.randn(2, 9, 3)
    split = SplitSequence(layer)
    found = []
    for read in (layer, split):
        torch.manual_seed(0)
        found.append(read(x)[0])
    assert_rel("out", *found, 1e-6)
    assert not torch.allclose(found[1], layer.eval()(x)[0], atol=1e-3)


@pytest.mark.slow
def test_the_benchmark_writes_rows(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    command = [sys.executable, str(ROOT / "benchmarks" / "distributed.py"), "--worlds", "2"]
    options = ["--lengths", "70", "--hidden", "4", "--seconds", "0.01", "--out", str(out)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    sequences = [row for row in rows if row["what"] != "exchange"]
    assert [row["what"] for row in sequences] == ["last", "all", "train"]
    for row in sequences:
        assert row["error"] < 1e-5
        assert row["ms"] >= row["ms_least"] > 0
        assert {"device", "torch", "commit", "sent_bytes", "merges"} <= set(row)
