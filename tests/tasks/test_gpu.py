"""Samplers on a CUDA device: the same words, no waiting, captured in graphs."""

import pytest
import torch

from prlstm import tasks

pytestmark = pytest.mark.gpu
NAMES = tasks.names()
LENGTHS = [1, 2, 3, 4, 5, 12, 40, 41, 64, 500]
FIELDS = ("input", "target", "mask", "loss_mask", "lengths")


@pytest.fixture(autouse=True)
def _needs_a_gpu() -> None:
    assert torch.cuda.is_available(), "these tests need a CUDA device"


def assert_equal(got: tasks.Batch, want: tasks.Batch) -> None:
    for field in FIELDS:
        assert getattr(got, field).cpu().equal(getattr(want, field).cpu()), field


def numbers_for(task: tasks.Task, rows: int, length: int) -> torch.Tensor:
    return torch.rand(rows, task.draws(task.input_length(length)), device="cuda")


@pytest.mark.parametrize("name", NAMES)
class TestSampler:
    @pytest.mark.parametrize("length", LENGTHS)
    def test_the_same_words_as_on_the_cpu(self, name: str, length: int) -> None:
        task = tasks.get(name)
        numbers = numbers_for(task, 2000, length)
        batch = task.sample_from(numbers, length)
        assert_equal(batch, task.sample_from(numbers.cpu(), length))
        assert batch.target[:20].equal(task.target(batch.input[:20]))

    def test_mixed_lengths(self, name: str) -> None:
        task = tasks.get(name)
        lengths = torch.tensor(LENGTHS * 40)
        numbers = numbers_for(task, len(lengths), 500)
        want = task.sample_from(numbers.cpu(), lengths)
        assert_equal(task.sample_from(numbers, lengths.cuda(), 500), want)
        assert_equal(task.sample_from(numbers, lengths.cuda()), want)

    # PyTorch says that it does not detect all of them
    @pytest.mark.filterwarnings("ignore:Synchronization debug mode:UserWarning")
    def test_nothing_waits(self, name: str) -> None:
        task = tasks.get(name)
        numbers, lengths = numbers_for(task, 6, 41), torch.tensor([41, 3, 1, 2, 40, 9]).cuda()
        torch.cuda.set_sync_debug_mode("error")
        try:
            batch = task.sample_from(numbers, 41)
            mixed = task.sample_from(numbers, lengths, 41)
            for one in (batch, mixed):
                made = tasks.tape(task, one.input, one.lengths)
                assert made.one_hot().shape[2] == made.size
                logits = torch.zeros(*one.target.shape, task.output_size, device="cuda")
                tasks.loss(logits, one.target, one.loss_mask)
                tasks.accuracy(logits, one.target, one.mask)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    @pytest.mark.parametrize("length", [1, 40, 500])
    def test_a_graph_replays_it(self, name: str, length: int) -> None:
        task = tasks.get(name)
        numbers = numbers_for(task, 64, length)
        lengths = torch.randint(1, length + 1, (64,), device="cuda")
        # once outside, as capturing asks
        task.sample_from(numbers, lengths, length)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            equal, mixed = (
                task.sample_from(numbers, length),
                task.sample_from(numbers, lengths, length),
            )
        for _ in range(3):
            numbers.uniform_()
            lengths.random_(1, length + 1)
            graph.replay()
            assert_equal(equal, task.sample_from(numbers, length))
            assert_equal(mixed, task.sample_from(numbers, lengths, length))

    def test_generators_of_both_kinds(self, name: str) -> None:
        task = tasks.get(name)
        here, there = (torch.Generator(device) for device in ("cpu", "cuda"))
        batch = task.sample(8, 40, generator=here.manual_seed(3), device="cuda")
        assert batch.input.is_cuda
        assert_equal(batch, task.sample(8, 40, generator=here.manual_seed(3)))
        batch = task.sample(8, 40, generator=there.manual_seed(3))
        assert batch.input.is_cuda
        lengths = torch.tensor([4, 40, 1], device="cuda")
        mixed = task.sample(lengths=lengths, generator=there.manual_seed(3))
        assert mixed.target.is_cuda
        assert mixed.target.equal(task.target(mixed.input, mixed.lengths))


def test_of_equal_logits_the_first_wins() -> None:
    logits = torch.zeros(300, 50, 5, device="cuda")
    target = torch.zeros(300, 50, dtype=torch.long, device="cuda")
    assert tasks.accuracy(logits, target, torch.ones_like(target, dtype=torch.bool)) == 1
