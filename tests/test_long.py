"""Long sequences without gradients: read in pieces, to the same end, in memory that is flat."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from prlstm import PRLSTM, State, dispatch, models
from tests.compare import assert_rel

EYE = torch.eye(3, dtype=torch.float64)


def make(letters: int = 3, **options: Any) -> PRLSTM:
    return PRLSTM(letters, 4, batch_first=True, dtype=torch.float64, **options)


@contextmanager
def pieces_of(states: int) -> Iterator[None]:
    """Without gradients, in pieces of so many states."""
    with torch.no_grad(), pytest.MonkeyPatch.context() as patch:
        patch.setitem(dispatch.STATES, "cpu", states)
        yield


def assert_states_are_the_same(got: State, want: State) -> None:
    assert got.seen == want.seen
    tensors = [pytree.tree_flatten(state)[0] for state in (got, want)]
    for mine, other in zip(*tensors, strict=True):
        # of levels that a row does not use nothing is known
        assert mine.shape == other.shape
    for mine, other in zip(got, want, strict=True):
        assert_rel("state", mine, other, 1e-12)


@settings(max_examples=40)
@given(
    st.integers(1, 120),
    st.integers(0, 40),
    st.integers(1, 4),
    st.sampled_from(["last", "all", "range"]),
    st.sampled_from(["fresh", "streamed", "plain"]),
    st.booleans(),
    st.booleans(),
    st.integers(1, 2),
    st.data(),
)
def test_pieces_are_the_whole(
    length: int,
    head: int,
    rows: int,
    asked: str,
    begun: str,
    by_ids: bool,
    mixed: bool,
    num_layers: int,
    data: st.DataObject,
) -> None:
    """Outputs, and the state to go on from: of any range, lengths and layers, from anywhere."""
    layer = make(num_layers=num_layers)
    ids = torch.randint(3, (rows, head + length))
    before, x = (ids if by_ids else EYE[ids]).split([head, length], 1)
    hx = None
    if begun == "plain":
        hx = tuple(torch.randn(2, num_layers, rows, 4, dtype=torch.float64))
    elif begun == "streamed" and head:
        _, hx = layer(before)
    output: str | tuple[int, int] = asked if asked != "range" else "all"
    if asked == "range":
        start = data.draw(st.integers(0, length - 1))
        output = (start, data.draw(st.integers(start + 1, length)))
    lengths = data.draw(st.lists(st.integers(1, length), min_size=rows, max_size=rows))
    given = {"output": output, "lengths": lengths if mixed else None}
    want, after = layer(x, hx, **given)
    with pieces_of(16):
        got, state = layer(x, hx, **given)
    assert_rel("out", got, want, 1e-12)
    assert_states_are_the_same(state, after)
    more = torch.randint(3, (rows, 9))
    assert_rel("on", layer(more, state)[0], layer(more, after)[0], 1e-12)


def test_rows_that_end_behind_a_block_that_waits() -> None:
    """Of ids as of vectors."""
    layer, ids = make(), torch.randint(3, (4, 60))
    found = []
    for x in (ids, EYE[ids]):
        _, state = layer(x[:, :3])
        _, state = layer(x[:, 3:40], state, lengths=[1, 2, 30, 37])
        found.append(layer(x[:, 40:], state)[0])
    assert_rel("on", *found, 1e-12)


@pytest.mark.parametrize("task", ["parity_check", "duplicate_string"])
@pytest.mark.parametrize("lengths", [None, [70, 3, 41, 16], [70, 66, 65, 70]])
@pytest.mark.parametrize("computation", [0, 1])
def test_a_tape_in_pieces_is_the_whole(
    task: str, lengths: list[int] | None, computation: int
) -> None:
    """Letters and empty cells, one answer or many, in any piece."""
    model = models.build(
        "pr_lstm", task, hidden_size=5, dtype=torch.float64, computation=computation
    )
    rows = 4
    words = torch.randint(2, (rows, 70))
    want = model(words, lengths)
    mask = torch.ones(want.shape[:2], dtype=torch.bool)
    if lengths is not None and want.shape[1] > 1:
        mask = torch.arange(want.shape[1]) < 2 * torch.tensor(lengths)[:, None]
    for states in (8, 100):
        with pieces_of(states):
            got = model(words, lengths)
        assert_rel("logits", got[mask], want[mask], 1e-12)


def test_ids_are_looked_up_from_any_count_on() -> None:
    """After an odd count too: a short piece first, then blocks of the whole sequence."""
    layer, ids, merges = make(2), torch.randint(2, (64, 1024)), 0
    zeros = torch.zeros(1, 64, 4, dtype=torch.float64)

    def count(module: object, inputs: tuple[Tensor, ...], output: object) -> None:
        nonlocal merges
        merges += inputs[0].shape[:-1].numel()

    layer.layers[0].compose.register_forward_hook(count)
    found = []
    with torch.no_grad():
        for hx in (None, (zeros, zeros), layer(ids[:, :7])[1]):
            for output in ("last", (1000, 1024)):
                merges = 0
                layer(ids, hx, output=output)
                found.append(merges)
    # blocks of 8 tokens are looked up; of the short piece at most 7 are not
    assert max(found) <= 64 * (1024 // 8 + 2 * 24 + 2 * 7 + 10) + 3 * (4 + 16 + 256)


class Memory(TorchDispatchMode):
    """The most bytes of floating-point numbers that were there at once."""

    def __init__(self) -> None:
        super().__init__()
        self.there: dict[int, tuple[StorageWeakRef, int]] = {}
        self.most = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        made = function(*args, **(kwargs or {}))
        for t in pytree.tree_leaves(made):
            if isinstance(t, Tensor) and t.is_floating_point():
                storage = t.untyped_storage()
                self.there[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        self.there = {key: one for key, one in self.there.items() if not one[0].expired()}
        self.most = max(self.most, sum(size for _, size in self.there.values()))
        return made


def most_bytes(read: Callable[[], object]) -> int:
    with pieces_of(32), Memory() as memory:
        read()
    return memory.most


READ: dict[str, Callable[[PRLSTM, Tensor], object]] = {
    "last": lambda layer, x: layer(x, output="last"),
    "last, after one leaf": lambda layer, x: layer(
        x, tuple(torch.zeros(2, layer.num_layers, 4, 4, dtype=torch.float64)), output="last"
    ),
    "a range at the end": lambda layer, x: layer(x, output=(x.shape[1] - 9, x.shape[1])),
    "a range": lambda layer, x: layer(x, output=(x.shape[1] // 2, x.shape[1] // 2 + 9)),
    "lengths": lambda layer, x: layer(
        x, output="last", lengths=[5, x.shape[1] // 3, x.shape[1] - 1, x.shape[1]]
    ),
}


@pytest.mark.parametrize(
    ("read", "letters", "num_layers"),
    [
        # two layers take seconds
        pytest.param(read, *sizes, marks=[pytest.mark.slow] * (sizes[1] > 1 and read != "last"))
        for read in READ
        for sizes in ((2, 1), (2, 2), (60, 1))
    ],
)
def test_memory_is_flat(read: str, letters: int, num_layers: int) -> None:
    layer = make(letters, num_layers=num_layers)
    found = []
    for length in (2**8, 2**10):
        x = torch.randint(letters, (4, length))
        found.append(most_bytes(partial(READ[read], layer, x)))
    assert found[1] <= 1.4 * found[0]


@pytest.mark.parametrize("read", ["last", "last, after one leaf"])
def test_ids_without_tables_take_no_more_memory_than_vectors(read: str) -> None:
    """Of a vocabulary so large that none is worth it."""
    layer = make(60)
    ids = torch.randint(60, (4, 2**9))
    x = torch.nn.functional.one_hot(ids, 60).double()
    by_ids, by_vectors = (most_bytes(partial(READ[read], layer, x)) for x in (ids, x))
    # the states of all letters, and their tokens while these are made
    alphabet = 60 * (60 + 8) * 8
    assert by_ids <= by_vectors + alphabet


@pytest.mark.parametrize(
    ("task", "mixed"),
    [
        ("parity_check", False),
        ("parity_check", True),
        ("reverse_string", True),
        pytest.param("reverse_string", False, marks=pytest.mark.slow),
    ],
)
def test_memory_of_a_model_is_flat(task: str, mixed: bool) -> None:
    model = models.build("pr_lstm", task, hidden_size=32, dtype=torch.float64)
    found = []
    for length in (2**8, 2**10):
        words = torch.randint(2, (4, length))
        lengths = [length // 3, 2, length, length - 1] if mixed else None
        # what is asked for, as pieces and side by side
        answers = 4 * model.task.output_length(length) * 32 * 8
        found.append(most_bytes(partial(model, words, lengths)) - 3 * answers)
    assert found[1] <= 1.5 * found[0]
