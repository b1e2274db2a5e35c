"""What holds of every task at every length."""

import pytest
import torch
from torch import Tensor

from prlstm import tasks
from prlstm.tasks import Batch, Task
from prlstm.tasks.uniform import nonzero_bits

NAMES, PARITY = tasks.names(), tasks.get("parity_check")
LENGTHS = [*range(1, 65), 500]


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def uniform_numbers(task: Task, rows: int, length: int, seed: int = 0) -> Tensor:
    return torch.rand(rows, task.draws(task.input_length(length)), generator=seeded(seed))


def same(a: Batch, b: Batch) -> bool:
    names = ("input", "target", "mask", "loss_mask", "lengths")
    return all(getattr(a, name).equal(getattr(b, name)) for name in names)


@pytest.mark.parametrize("name", NAMES)
class TestEveryLength:
    def test_answers_are_those_of_the_definition(self, name: str) -> None:
        task = tasks.get(name)
        for length in LENGTHS:
            batch = task.sample(16, length, generator=seeded(length))
            assert batch.target.equal(task.target(batch.input)), length
            assert batch.mask.equal(task.mask(batch.target)), length

    def test_answers_at_all_other_lengths(self, name: str) -> None:
        task = tasks.get(name)
        batch = task.sample(lengths=range(65, 500), generator=seeded(0))
        assert batch.target.equal(task.target(batch.input, batch.lengths))

    def test_shapes_and_ranges(self, name: str) -> None:
        task = tasks.get(name)
        for length in LENGTHS:
            batch = task.sample(8, length, generator=seeded(length))
            n = length - 1 if name == "modular_arithmetic" and length % 2 == 0 else length
            answers = task.output_length(n)
            assert batch.input.shape == (8, n)
            assert batch.target.shape == batch.mask.shape == batch.loss_mask.shape == (8, answers)
            assert batch.lengths.tolist() == [n] * 8
            assert batch.input.dtype == batch.target.dtype == batch.lengths.dtype == torch.int64
            assert batch.mask.dtype == batch.loss_mask.dtype == torch.bool
            assert int(batch.input.min()) >= 0
            assert int(batch.input.max()) < task.input_size
            assert int(batch.target.min()) >= 0
            assert int(batch.target.max()) < task.output_size
            assert batch.loss_mask.all()
            # counted answers are the first ones, and there is always one
            assert batch.mask[:, 0].all()
            assert (batch.mask[:, 1:] <= batch.mask[:, :-1]).all()
            if task.single_output:
                assert answers == 1

    def test_a_seed_gives_the_same_batch_again(self, name: str) -> None:
        task = tasks.get(name)
        for length in (1, 2, 3, 40):
            first = task.sample(8, length, generator=seeded(3))
            assert same(first, task.sample(8, length, generator=seeded(3)))
        assert not same(first, task.sample(8, 40, generator=seeded(4)))


@pytest.mark.parametrize("name", NAMES)
class TestMixedLengths:
    def test_a_row_is_the_same_alone(self, name: str) -> None:
        task = tasks.get(name)
        lengths = torch.tensor(LENGTHS)[torch.randperm(len(LENGTHS), generator=seeded(0))]
        numbers = uniform_numbers(task, len(lengths), 500)
        batch = task.sample_from(numbers, lengths)
        for row, length in enumerate(lengths.tolist()):
            n = task.input_length(length)
            alone = task.sample_from(numbers[row : row + 1, : task.draws(n)], length)
            answers = task.output_length(n)
            assert int(batch.lengths[row]) == n
            assert batch.input[row, :n].equal(alone.input[0])
            assert batch.target[row, :answers].equal(alone.target[0])
            assert batch.mask[row, :answers].equal(alone.mask[0])
            assert batch.loss_mask[row].tolist() == [
                place < answers for place in range(batch.target.shape[1])
            ]
            # behind the end of a row there is nothing
            assert not batch.input[row, n:].any()
            assert not batch.target[row, answers:].any()
            assert not batch.mask[row, answers:].any()

    def test_target_mask_and_tape(self, name: str) -> None:
        task = tasks.get(name)
        lengths = [7, 1, 40, 2, 12, 3, 40]
        batch = task.sample(lengths=lengths, generator=seeded(1))
        # padding of any kind is not looked at
        words = batch.input.clone()
        words[torch.arange(words.shape[1]) >= batch.lengths[:, None]] = 77
        assert task.target(words, batch.lengths).equal(batch.target)
        assert task.mask(batch.target, batch.lengths).equal(batch.mask)
        for computation in (0, 1, 2):
            made = tasks.tape(task, words, batch.lengths, computation=computation)
            assert int(made.tokens.max()) < made.size
            for row, n in enumerate(batch.lengths.tolist()):
                word = batch.input[row : row + 1, :n]
                alone = tasks.tape(task, word, computation=computation)
                cells, answers = alone.tokens.shape[1], task.output_length(n)
                assert int(made.lengths[row]) == cells
                assert made.tokens[row, :cells].equal(alone.tokens[0])
                assert made.tokens[row, cells:].eq(made.size - 1).all()
                assert made.answers[row, :answers].equal(alone.answers[0])
                states = torch.randn(len(words), made.tokens.shape[1], 3)
                assert made.read(states)[row, :answers].equal(states[row, cells - answers : cells])
                assert alone.answers[0].tolist() == list(range(cells - answers, cells))

    def test_tapes_with_answers_fed_back(self, name: str) -> None:
        task = tasks.get(name)
        batch = task.sample(lengths=[7, 1, 12, 2], generator=seeded(2))
        for computation in (0, 2):
            made = tasks.tape(
                task, batch.input, batch.lengths, computation=computation, earlier=batch.target
            )
            for row, n in enumerate(batch.lengths.tolist()):
                answers, begin = task.output_length(n), (1 + computation) * n
                given = batch.target[row, :answers].tolist()
                empty = task.input_size + (computation > 0)
                want = [*batch.input[row, :n].tolist(), *[task.input_size] * (computation * n)]
                want += [empty, *given]
                assert int(made.lengths[row]) == len(want)
                assert made.tokens[row, : len(want)].tolist() == want
                assert made.tokens[row, len(want) :].eq(empty).all()
                assert made.answers[row, :answers].tolist() == list(range(begin, begin + answers))

    def test_lengths_of_any_kind(self, name: str) -> None:
        task = tasks.get(name)
        want = task.sample(lengths=[3, 40, 9], generator=seeded(5))
        for lengths in (torch.tensor([3, 40, 9]), torch.tensor([3, 40, 9], dtype=torch.int32)):
            assert same(want, task.sample(lengths=lengths, generator=seeded(5)))
        numbers = uniform_numbers(task, 3, 40, seed=5)
        assert same(want, task.sample_from(numbers, [3, 40, 9]))
        assert same(want, task.sample_from(numbers, (3, 40, 9), 40))


@pytest.mark.parametrize("name", NAMES)
class TestPureSampler:
    def test_rows_do_not_touch_each_other(self, name: str) -> None:
        """So that many steps, or many seeds, can be drawn in one call."""
        task = tasks.get(name)
        numbers = uniform_numbers(task, 24, 23)
        steps = task.sample_from(numbers, 23).split(8)
        assert len(steps) == 3
        for step, part in zip(steps, numbers.split(8), strict=True):
            assert same(step, task.sample_from(part, 23))

    @pytest.mark.parametrize("length", [1, 2, 3, 4, 40, 500])
    def test_nothing_is_read_back(self, name: str, length: int) -> None:
        """On the meta device there are no values: shapes come from shapes alone."""
        task = tasks.get(name)
        n = task.input_length(length)
        numbers = torch.empty(4, task.draws(n), device="meta")
        lengths = torch.empty(4, dtype=torch.long, device="meta")
        for batch in (task.sample_from(numbers, length), task.sample_from(numbers, lengths, n)):
            assert batch.input.shape == (4, n)
            assert batch.target.shape == (4, task.output_length(n))
            made = tasks.tape(task, batch.input, batch.lengths)
            assert made.tokens.shape == (4, n + task.output_length(n))

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_extreme_numbers(self, name: str, dtype: torch.dtype) -> None:
        """The least and the greatest number below one still make a word of the language."""
        task = tasks.get(name)
        for length in (1, 2, 3, 4, 5, 9, 64, 500):
            greatest = torch.nextafter(torch.ones((), dtype=dtype), torch.zeros((), dtype=dtype))
            numbers = torch.stack(
                [torch.zeros_like(greatest), greatest, 1 - 2.0**-24 + 0 * greatest]
            )[:, None].expand(3, task.draws(task.input_length(length)))
            batch = task.sample_from(numbers, length)
            assert batch.target.equal(task.target(batch.input))

    def test_numbers_are_not_changed(self, name: str) -> None:
        task = tasks.get(name)
        numbers = uniform_numbers(task, 4, 30)
        before = numbers.clone()
        task.sample_from(numbers, 30)
        assert numbers.equal(before)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_shown_can_be_read(name: str) -> None:
    task = tasks.get(name)
    for word in task.sample(8, 23, generator=seeded(0)).input:
        assert task.read(task.show(word)) == word.tolist()


def test_batches_move_and_split() -> None:
    batch = tasks.get("reverse_string").sample(6, 5)
    assert len(batch) == 6
    assert batch.to("meta").target.device.type == "meta"
    with pytest.raises(ValueError, match="rows=4: expected a divisor of the 6 rows"):
        batch.split(4)


def test_the_default_type_changes_nothing() -> None:
    want = PARITY.sample(4, 10, generator=seeded(0))
    for dtype in (torch.float64, torch.bfloat16):
        torch.set_default_dtype(dtype)
        try:
            assert same(PARITY.sample(4, 10, generator=seeded(0)), want)
        finally:
            torch.set_default_dtype(torch.float32)


def test_the_generator_may_live_elsewhere() -> None:
    assert PARITY.sample(4, 10, generator=seeded(0), device="meta").input.device.type == "meta"


def test_wide_numbers_are_free_in_every_bit() -> None:
    """Only the last bits know that zero is excluded; the first ones are ones in one half."""
    numbers = torch.full((1, 40), 0.5 + 2.0**-20)
    assert not nonzero_bits(numbers, torch.tensor([40]))[0, :20].any()
    assert nonzero_bits(numbers - 2.0**-19, torch.tensor([40]))[0].all()


def test_no_seed_is_touched_when_a_generator_is_given() -> None:
    state = torch.get_rng_state()
    tasks.get("solve_equation").sample(4, 20, generator=seeded(0))
    assert torch.get_rng_state().equal(state)
