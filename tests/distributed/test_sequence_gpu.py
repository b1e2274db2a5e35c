"""One sequence over several ranks on CUDA devices: the kernels, NCCL, and gloo on one GPU."""

import copy
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch import Tensor

from prlstm import PRLSTM
from prlstm.distributed import SplitSequence, partition, sum_gradients
from tests.compare import TOLERANCE, assert_rel

pytestmark = pytest.mark.gpu
FEATURES, HIDDEN, LENGTHS = 5, 64, (37, 1003, 10_007)
FORWARD, BACKWARD = TOLERANCE[torch.float32]


def compare(rank: int, layer: PRLSTM, x: Tensor, world: int) -> None:
    """Outputs and gradients of all parts, and the last state, with one process in float64."""
    part = partition(x.shape[1], world)[rank]
    mine = slice(part.start, part.stop)
    exact = copy.deepcopy(layer).cpu().double()
    exact.backend = "eager"
    want, _ = exact(x.double() if x.is_floating_point() else x)
    weights = torch.randn(want.shape, generator=torch.Generator().manual_seed(2))
    (want * weights).sum().backward()

    split, here = SplitSequence(layer), x[:, mine].cuda()
    got, _ = split(here)
    assert_rel("out", got, want[:, mine], FORWARD)
    (got * weights[:, mine].cuda()).sum().backward()
    sum_gradients(layer)
    for (name, gradient), known in zip(layer.named_parameters(), exact.parameters(), strict=True):
        assert gradient.grad is not None
        assert known.grad is not None
        assert_rel(name, gradient.grad, known.grad, BACKWARD)
    layer.zero_grad()
    with torch.no_grad():
        last, _ = split(here, output="last")
    assert_rel("last", last, want[:, -1], FORWARD)


def run(rank: int, world: int, backend: str, folder: str) -> None:
    """One rank."""
    torch.cuda.set_device(rank % torch.cuda.device_count())
    dist.init_process_group(
        backend,
        init_method=f"file://{folder}/meet",
        rank=rank,
        world_size=world,
        timeout=timedelta(seconds=60),
    )
    torch.manual_seed(1)
    # exact float32 products stay with PyTorch unless kernels are asked for
    layer = PRLSTM(FEATURES, HIDDEN, 2, batch_first=True, device="cuda", backend="triton")
    assert all(reader.kernels() is not None for reader in layer.readers())
    generator = torch.Generator().manual_seed(0)
    for length in LENGTHS:
        compare(rank, layer, torch.randn(2, length, FEATURES, generator=generator), world)
        compare(rank, layer, torch.randint(FEATURES, (2, length), generator=generator), world)
    dist.destroy_process_group()


def together(world: int, backend: str, folder: Path) -> None:
    processes.spawn(run, (world, backend, str(folder)), nprocs=world)


@pytest.mark.parametrize("world", [1, 2, 4])
def test_nccl(world: int, tmp_path: Path) -> None:
    if world > torch.cuda.device_count():
        pytest.skip(f"NCCL wants a GPU for each of {world} ranks")
    together(world, "nccl", tmp_path)


@pytest.mark.parametrize("world", [2, 3])
def test_gloo_with_states_on_a_gpu(world: int, tmp_path: Path) -> None:
    together(world, "gloo", tmp_path)
