"""Where states stand, and the steps that fill them: brackets instead of numbers."""

from hypothesis import given
from hypothesis import strategies as st

from prlstm.kernels.layout import PREFIXES, Array, Layout, lay_out
from prlstm.tree import bracketing
from prlstm.tree.plan import _block

# states of a level by their places; what is not written is not there
Memory = dict[int, dict[int, str]]


def place(array: Array, index: int) -> int:
    return array.first if index == 0 else array.start + index * array.step


def filled(layout: Layout, length: int, count: int) -> Memory:
    """All arrays after a sweep over the leaves `count + 1 ..`."""
    memory: Memory = {level: {} for level in (PREFIXES, *range(len(layout.sizes)))}
    for level in layout.waiting:
        size = 1 << level
        memory[level][0] = _block((count >> level << level) - size + 1, size)
    for slot, level in layout.from_folds:
        memory[PREFIXES][slot] = bracketing(count >> level << level)
    for index in range(length):
        memory[0][place(layout.leaves, index)] = str(count + index + 1)
    copy_first(layout, memory, 0)
    for step in layout.steps:
        for index in range(step.length):
            left = memory[step.left.level][place(step.left, index)]
            right = memory[step.right.level][place(step.right, index)]
            target = memory[step.out.level]
            assert place(step.out, index) not in target
            target[place(step.out, index)] = f"({left} {right})"
        if step.is_up:
            copy_first(layout, memory, step.out.level)
    return memory


def copy_first(layout: Layout, memory: Memory, level: int) -> None:
    for slot, source in layout.from_blocks:
        if source == level:
            memory[PREFIXES][slot] = memory[level][0]


@given(st.data())
def test_every_prefix_that_is_read_is_the_right_one(data: st.DataObject) -> None:
    length = data.draw(st.integers(1, 70))
    start, count = data.draw(st.integers(0, length - 1)), data.draw(st.integers(0, 70))
    layout = lay_out(length, start, count)
    memory = filled(layout, length, count)
    for t in range(count + start + 1, count + length + 1):
        assert memory[PREFIXES][layout.slot(t)] == bracketing(t)
    assert len(memory[PREFIXES]) == layout.slots
    for level, (states, size) in enumerate(zip(layout.counts, layout.sizes, strict=True)):
        assert sorted(memory[level]) == list(range(states))
        assert size in (states, states + 1)
        assert size % 2 == 0
    assert sum(step.length for step in layout.steps) == layout.merges
    rows = [step.row for step in layout.steps]
    assert rows == [sum(s.length for s in layout.steps[:k]) for k in range(len(rows))]


@given(st.data())
def test_what_waits_is_the_last_block_of_its_level(data: st.DataObject) -> None:
    length, count = data.draw(st.integers(1, 70)), data.draw(st.integers(0, 70))
    layout = lay_out(length, length - 1, count)
    memory, end = filled(layout, length, count), count + length
    for level in layout.pending:
        size, last = 1 << level, layout.counts[level] - 1
        assert memory[level][last] == _block((end >> level << level) - size + 1, size)
    # of the last state alone, only last blocks are read again
    assert all(layout.needs_last_alone(level) for level in range(len(layout.sizes)))
