"""The state is a value: continued twice, detached, moved, indexed, saved and loaded."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch.utils import _pytree as pytree

from prlstm import PRLSTM, State
from tests.compare import assert_same


def started(rows: int = 3, cell: str = "lstm", refine: int = 1) -> tuple[PRLSTM, State]:
    layer = PRLSTM(2, 4, num_layers=2, batch_first=True, cell=cell, refine=refine)
    x = torch.randn(rows, 13, 2)
    return layer, layer(x, lengths=[13, 6, 8][:rows])[1]


def test_continuing_twice_gives_the_same_twice() -> None:
    layer, state = started()
    x = torch.randn(3, 5, 2)
    before = [t.clone() for t in pytree.tree_leaves(state)]
    once, _ = layer(x, state)
    layer(torch.randn(3, 9, 2), state)
    twice, _ = layer(x, state)
    assert torch.equal(once, twice)
    after = pytree.tree_leaves(state)
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("length", [1, 2, 3, 8])
def test_writing_to_outputs_does_not_reach_the_state(length: int) -> None:
    layer, x = PRLSTM(2, 4, batch_first=True), torch.randn(2, length, 2)
    with torch.no_grad():
        for output in ("all", "last", (length - 1, length)):
            _, clean = layer(x, output=output)
            want, _ = layer(x, clean)
            out, state = layer(x, output=output)
            out.fill_(7.0)
            for tensor in state:
                tensor.fill_(7.0)
            got, _ = layer(x, state)
            assert torch.equal(got, want)


def test_unpacks_like_a_pair() -> None:
    _, state = started()
    h_n, c_n = state
    assert torch.equal(h_n, state[0])
    assert torch.equal(c_n, state[-1])
    assert len(state) == 2
    _, relu = started(cell="relu")
    (h_n,) = relu
    assert h_n.shape == (2, 3, 4)


def test_detach_cuts_history() -> None:
    layer, state = started()
    assert all(t.requires_grad for t in state)
    cut = state.detach()
    assert not any(t.requires_grad for t in pytree.tree_leaves(cut))
    assert torch.equal(cut[0], state[0])
    out, _ = layer(torch.randn(3, 2, 2), cut)
    out.sum().backward()


def test_to_moves_every_tensor() -> None:
    layer, state = started()
    moved = state.to("meta")
    assert {t.device.type for t in pytree.tree_leaves(moved)} == {"meta"}
    double = state.to(torch.float64)
    out, _ = layer.double()(torch.randn(3, 2, 2).double(), double)
    assert out.dtype == torch.float64


@pytest.mark.parametrize(
    ("index", "rows"),
    [
        ([2, 0], [2, 0]),
        ([1, 1], [1, 1]),
        ([-1], [2]),
        (slice(1, None), [1, 2]),
        (torch.tensor([0, 2]), [0, 2]),
        (torch.tensor([True, False, True]), [0, 2]),
    ],
)
def test_rows_go_on_alone(index: torch.Tensor | list[int] | slice, rows: list[int]) -> None:
    layer, state = started()
    x = torch.randn(3, 5, 2)
    whole, _ = layer(x, state)
    some, after = layer(x[rows], state.rows(index))
    assert_same("rows", some, whole[rows])
    assert len(after.counts) == len(rows)


def test_rows_refuses_what_selects_no_batch() -> None:
    _, state = started()
    for index in (torch.tensor(1), [5], [-4], [1.0], [True], {0, 1}):
        with pytest.raises(ValueError, match=r"rows\(.*\): expected .* for a batch of 3"):
            state.rows(index)
    with pytest.raises(TypeError, match=r"state\.rows"):
        state[torch.tensor([0, 1])]
    _, one = PRLSTM(2, 4)(torch.randn(3, 2))
    with pytest.raises(ValueError, match="unbatched"):
        one.rows([0])


def test_counts_are_kept_for_every_row() -> None:
    layer, state = started()
    assert state.counts == (13, 6, 8)
    _, state = layer(torch.randn(3, 2, 2), state)
    assert state.counts == (15, 8, 10)
    zeros = torch.zeros(2, 3, 4)
    # a plain state is a leaf, and counted as one
    assert layer(torch.randn(3, 2, 2), (zeros, zeros))[1].counts == (3, 3, 3)


def test_repr_is_short() -> None:
    _, state = started()
    assert repr(state) == "State(lstm, (2, 3, 4), (2, 3, 4), leaves seen: 6..13)"


def test_it_is_a_pytree() -> None:
    layer, state = started()
    leaves, spec = pytree.tree_flatten(state)
    assert all(isinstance(leaf, torch.Tensor) for leaf in leaves)
    again = pytree.tree_unflatten(leaves, spec)
    x = torch.randn(3, 5, 2)
    assert torch.equal(layer(x, again)[0], layer(x, state)[0])


def test_an_empty_batch_has_a_state_too(tmp_path: Path) -> None:
    layer, state = started()
    nobody = state.rows([])
    assert nobody.counts == ()
    _, empty = layer(torch.randn(0, 7, 2))
    for one in (nobody, empty):
        one.save(tmp_path / "empty.safetensors")
        loaded = State.load(tmp_path / "empty.safetensors")
        assert layer(torch.randn(0, 3, 2), loaded)[0].shape == (0, 3, 4)


@pytest.mark.parametrize("batched", [True, False])
def test_save_and_load(tmp_path: Path, batched: bool) -> None:
    layer, state = started()
    x = torch.randn(3, 5, 2)
    if not batched:
        x = x[0]
        _, state = layer(torch.randn(13, 2))
    state.save(tmp_path / "state.safetensors")
    loaded = State.load(tmp_path / "state.safetensors")
    assert loaded.counts == state.counts
    assert torch.equal(layer(x, loaded)[0], layer(x, state)[0])
    loaded.save(tmp_path / "again.safetensors")
    files = [tmp_path / name for name in ("state.safetensors", "again.safetensors")]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert sorted(tmp_path.iterdir()) == sorted(files)


def test_load_refuses_other_files(tmp_path: Path) -> None:
    path = tmp_path / "other.safetensors"
    save_file({"a": torch.zeros(2)}, path)
    with pytest.raises(ValueError, match="expected a saved state"):
        State.load(path)
    save_file(
        {"0": torch.zeros(2)},
        path,
        {"prlstm.State/1": '[2, 1, [3], "lstm", true]'},
    )
    with pytest.raises(ValueError, match="a damaged state"):
        State.load(path)
    final, node = torch.zeros(1, 3, 4), torch.zeros(3, 1, 4)
    fitting = '[1, 1, 4, "relu", true]'
    for context, tensors in (
        ("{}", [final]),
        ("[]", [final]),
        ("nonsense", [final]),
        ('[1, 0, [3, 4], "relu", true]', [final]),
        ('[1, 0, -3, "relu", true]', [final]),
        ("[1, 0, 3, 5, true]", [final]),
        ('[1, 0, 3, "relu", false]', [final]),
        ('[1, 0, 3, "relu", true]', [final[0]]),
        (fitting, [final, node]),
        (fitting, [final, node, node[:2]]),
        (fitting, [final.expand(2, 3, 4), node, node]),
    ):
        named = {str(n): t.clone() for n, t in enumerate(tensors)}
        save_file(named, path, {"prlstm.State/1": context})
        with pytest.raises(ValueError, match="a damaged state"):
            State.load(path)
    save_file({"0": final, "1": node, "2": node.clone()}, path, {"prlstm.State/1": fitting})
    assert State.load(path).counts == (4, 4, 4)
    _, state = started()
    state.save(path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ValueError, match=r"other\.safetensors: not a safetensors file"):
        State.load(path)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        state.save(tmp_path)
    with pytest.raises(FileNotFoundError, match="the folder does not exist"):
        state.save(tmp_path / "missing" / "state.safetensors")
    with pytest.raises(FileNotFoundError):
        State.load(tmp_path / "missing.safetensors")
    _, state = PRLSTM(2, 4, bidirectional=True)(torch.randn(3, 1, 2))
    state.save(path)
    assert torch.equal(State.load(path)[0], state[0])
