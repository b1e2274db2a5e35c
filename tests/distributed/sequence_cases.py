"""What several ranks do together, compared with one process: run by `sequence_ranks`."""

import os
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch._dynamo  # the first use of a checkpoint imports it
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from prlstm import PRLSTM, State, dispatch
from prlstm.distributed import SplitSequence, partition, sum_gradients
from prlstm.distributed.sequence.work import work
from tests.compare import assert_rel

B, D, H = 2, 3, 5
# float64, outputs and gradients
TOLERANCE = 1e-10


def made(num_layers: int = 1, *, dtype: torch.dtype = torch.float64, **more: Any) -> PRLSTM:
    """A layer whose weights are the same on every rank."""
    torch.manual_seed(1)
    layer = PRLSTM(D, H, num_layers, batch_first=True, dtype=dtype, **more)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.add_(torch.randn_like(weight) * 0.3)
    return layer


def tokens(length: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(B, length, D, dtype=torch.float64, generator=generator)


def loss(out: Tensor, weights: Tensor) -> Tensor:
    return (out * weights).sum()


def gradients(module: nn.Module) -> dict[str, Tensor]:
    return {name: w.grad.clone() for name, w in module.named_parameters() if w.grad is not None}


def assert_states(got: State, want: State) -> None:
    assert got.counts == want.counts
    for mine, other in zip(got, want, strict=True):
        assert_rel("state", mine, other, TOLERANCE)
    for mine, other in zip(got.pending, want.pending, strict=True):
        for a, b in zip((*mine.blocks, *mine.folds), (*other.blocks, *other.folds), strict=True):
            assert (a is None) == (b is None)
            for x, y in zip(a or (), b or (), strict=True):
                assert_rel("waiting", x, y, TOLERANCE)


def compare(
    rank: int,
    layer: PRLSTM,
    x: Tensor,
    parts: tuple[range, ...],
    hx: State | None = None,
    output: str = "all",
) -> None:
    """Outputs, states and all gradients of the parts against those of the whole."""
    mine = slice(parts[rank].start, parts[rank].stop)
    floating = x.is_floating_point()
    x = x.requires_grad_() if floating else x
    want, state = layer(x, hx, output=output)
    weights = torch.randn(want.shape, dtype=want.dtype, generator=torch.Generator().manual_seed(2))
    loss(want, weights).backward()
    known = gradients(layer)
    layer.zero_grad()

    split = SplitSequence(layer)
    part = x[:, mine].detach()
    part = part.requires_grad_() if floating else part
    got, after = split(part, hx, output=output)
    if output == "all":
        assert_rel("out", got, want[:, mine], TOLERANCE)
        loss(got, weights[:, mine]).backward()
    else:
        assert_rel("out", got, want, TOLERANCE)
        # the sum over ranks counts this loss once
        (loss(got, weights) / len(parts)).backward()
    with torch.no_grad():
        _, there = layer(x[:, : mine.stop], hx)
    assert_states(after, there)
    if rank == len(parts) - 1:
        assert_states(after, state)
    sum_gradients(layer)
    for name, gradient in gradients(layer).items():
        assert_rel(name, gradient, known[name], TOLERANCE)
    assert known.keys() == gradients(layer).keys()
    if floating:
        assert_rel("x", part.grad, x.grad[:, mine], TOLERANCE)
    layer.zero_grad()


def equal_to_one_process(rank: int, world: int) -> None:
    for length in (world, 37, 101, 1003):
        compare(rank, made(), tokens(length), partition(length, world))


def equal_with_layers_and_cells(rank: int, world: int) -> None:
    for layer in (made(3), made(2, cell="relu", refine=2), made(2, cell="gru", refine=0)):
        compare(rank, layer, tokens(77), partition(77, world))
    compare(rank, made(2, checkpoint=True), tokens(77), partition(77, world))


def equal_at_the_end(rank: int, world: int) -> None:
    for length, layers in ((world, 1), (101, 1), (1003, 2)):
        compare(rank, made(layers), tokens(length), partition(length, world), output="last")


def equal_for_ids(rank: int, world: int) -> None:
    ids = torch.randint(D, (B, 333), generator=torch.Generator().manual_seed(3))
    for output in ("all", "last"):
        compare(rank, made(2), ids, partition(333, world), output=output)


def equal_in_parts_by_hand(rank: int, world: int) -> None:
    # a long one, short ones, and a last one that is longer than all
    lengths = [48, 16, 4, 99][-world:]
    ends = [sum(lengths[:n]) for n in range(world + 1)]
    parts = tuple(map(range, ends, ends[1:]))
    compare(rank, made(2), tokens(sum(lengths)), parts)
    compare(rank, made(2), tokens(sum(lengths)), parts, output="last")


def equal_from_a_state(rank: int, world: int) -> None:
    layer = made(2)
    with torch.no_grad():
        _, state = layer(tokens(3 * 64, seed=5))
    for output in ("all", "last"):
        compare(rank, layer, tokens(203), partition(203, world), state, output)


def equal_without_gradients(rank: int, world: int) -> None:
    layer, x = made(2), tokens(1003)
    part = partition(1003, world)[rank]
    # long sequences are read in chunks
    dispatch.STATES["cpu"] = 64
    with torch.no_grad():
        for output in ("all", "last"):
            want, state = layer(x, output=output)
            got, after = SplitSequence(layer)(x[:, part.start : part.stop], output=output)
            expected = want[:, part.start : part.stop] if output == "all" else want
            assert_rel("out", got, expected, TOLERANCE)
            if rank == world - 1:
                assert_states(after, state)
    dispatch.STATES["cpu"] = 1 << 15


def equal_unbatched_and_time_first(rank: int, world: int) -> None:
    layer, x = made(), tokens(101)
    part = slice(partition(101, world)[rank].start, partition(101, world)[rank].stop)
    got, _ = SplitSequence(layer)(x[0, part])
    assert_rel("unbatched", got, layer(x[0])[0][part], TOLERANCE)
    last, (h_n, _) = SplitSequence(layer)(x[0, part], output="last")
    assert (last.shape, h_n.shape) == ((H,), (1, H))
    layer.batch_first = False
    got, _ = SplitSequence(layer)(x.transpose(0, 1)[part])
    assert_rel("time first", got, layer(x.transpose(0, 1))[0][part], TOLERANCE)


def equal_in_half_precision(rank: int, world: int) -> None:
    # h and c are of different types
    layer, x = made(dtype=torch.bfloat16), tokens(101).bfloat16()
    part = slice(partition(101, world)[rank].start, partition(101, world)[rank].stop)
    want, _ = layer(x)
    want.float().square().sum().backward()
    known = gradients(layer)
    layer.zero_grad()
    got, _ = SplitSequence(layer)(x[:, part])
    assert_rel("out", got, want[:, part], 1e-2)
    got.float().square().sum().backward()
    sum_gradients(layer)
    for name, gradient in gradients(layer).items():
        assert_rel(name, gradient, known[name], 3e-2)


def bytes_do_not_grow(rank: int, world: int) -> None:
    layer = made(2)
    header, state = 32, B * 2 * H * 8
    sent, most = {}, {}
    for length in (world * 16, world * 64, world * 1024, 1003, 2006, 4012):
        part = partition(length, world)[rank]
        split = SplitSequence(layer)
        x = tokens(length)[:, part.start : part.stop]
        out, _ = split(x)
        sent[length] = split.ranks.sent_bytes
        out.sum().backward()
        most[length] = split.ranks.sent_bytes - sent[length]
    # one root for each layer, and what must agree
    assert {sent[world * n] for n in (16, 64, 1024)} == {header + 2 * state}
    assert {most[world * n] for n in (16, 64, 1024)} == {2 * (world - 1) * state}
    # lengths that divide by nothing: a few more, as many for longer parts
    assert sent[1003] == sent[2006] == sent[4012] <= header + 8 * 2 * state


def equal_where_merges_alone_are_trained(rank: int, world: int) -> None:
    layer = made(2)
    for name, weight in layer.named_parameters():
        weight.requires_grad_("layers.0.leaf" not in name and "layers.1" not in name)
    # the last part is a token, which is not merged
    length = 2 * world - 1
    ids = torch.randint(D, (B, length), generator=torch.Generator().manual_seed(3))
    for output in ("all", "last"):
        compare(rank, layer, ids, partition(length, world), output=output)
        compare(rank, layer, tokens(length), partition(length, world), output=output)


def refused(call: Callable[..., object], *args: Any, **named: Any) -> str:
    """What all ranks say."""
    try:
        call(*args, **named)
    except ValueError as wrong:
        said: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(said, str(wrong))
        assert len(set(said)) == 1, said
        return said[0]
    raise AssertionError("expected a ValueError")


def wrong_use_is_named_on_every_rank(rank: int, world: int) -> None:
    split, x = SplitSequence(made()), tokens(8)
    odd = rank == world - 1
    said = refused(split, x[: 1 + odd])
    assert said == (
        f"ranks disagree: batch=1 on rank 0, batch=2 on rank {world - 1}; "
        "expected the same on every rank"
    )
    assert f"rank {world - 1} refused: input has shape (2, 8, 2)" in refused(
        split, x[..., :2] if odd else x
    )
    # where all refuse, all are told
    assert "; rank 1 refused: input has shape (2, 8, 2)" in refused(split, x[..., :2])
    assert "the sequence is empty" in refused(split, x[:, :0] if odd else x)
    assert "input has type torch.float32" in refused(split, x.float() if odd else x)
    assert "input type=torch.float64 on rank 0, input type=torch.int64" in refused(
        split, torch.zeros(B, 8, dtype=torch.long) if odd else x
    )
    assert "output=all on rank 0, output=last" in refused(split, x, output="last" if odd else "all")
    other = SplitSequence(PRLSTM(D, H + odd, batch_first=True, dtype=torch.float64))
    assert f"hidden_size={H} on rank 0, hidden_size={H + 1}" in refused(other, x)
    assert "gradient of input=False on rank 0" in refused(split, tokens(8).requires_grad_(odd))
    for k in (0, 1):
        frozen = made(2)
        frozen.layers[k].requires_grad_(not odd)
        assert refused(SplitSequence(frozen), x) == (
            f"ranks disagree: gradient of weights of layer {k}=True on rank 0, gradient of weights "
            f"of layer {k}=False on rank {world - 1}; expected the same on every rank"
        )
    # the first part divides by nothing, so that every part is many blocks
    said = refused(split, tokens(511 if rank == 0 else 512))
    assert "part 0 is made of 9 blocks of the tree, expected at most 8" in said
    assert f"distributed.partition({511 + (world - 1) * 512}, {world})" in said
    _, state = made()(tokens(511))
    said = refused(split, tokens(512), state.detach())
    assert "after 511 leaves" in said
    with torch.no_grad():
        _, state = made(2)(tokens(512))
    for tensor in state.pending[1].blocks[-1]:
        tensor.requires_grad_(odd)
    said = refused(SplitSequence(made(2)), tokens(512), state)
    assert "gradient of hx of layer 1=False on rank 0" in said
    # and nobody is out of step
    compare(rank, made(), tokens(37), partition(37, world))


def weights_that_differ_are_not_summed(rank: int, world: int) -> None:
    odd = rank == world - 1
    for wide, narrow in ((PRLSTM(D, H + 1), PRLSTM(D, H)), (PRLSTM(D, H).double(), PRLSTM(D, H))):
        said = refused(sum_gradients, wide if odd else narrow)
        assert "weight layers.0.compose.bias=(25,) of torch.float32 on rank 0" in said
        assert "and 3 more; expected the same" in said
    frozen = made()
    frozen.layers[0].leaf.bias.requires_grad_(not odd)
    assert refused(sum_gradients, frozen) == (
        "ranks disagree: weight layers.0.leaf.bias=(15,) of torch.float64 on rank 0, weight "
        f"layers.0.leaf.bias=frozen on rank {world - 1}; expected the same on every rank"
    )
    said = refused(sum_gradients, nn.Sequential(frozen) if odd else frozen)
    assert "=nothing on rank" in said
    # and nobody is out of step
    compare(rank, made(), tokens(37), partition(37, world))


class Model(nn.Module):
    """Ids to numbers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.embedding = nn.Embedding(7, D, dtype=torch.float64)
        self.layer: nn.Module = PRLSTM(D, H, 2, batch_first=True, dtype=torch.float64)
        self.read_out = nn.Linear(H, 1, dtype=torch.float64)

    def forward(self, ids: Tensor) -> Tensor:
        return self.read_out(self.layer(self.embedding(ids))[0])


def one_process(ids: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """Outputs of the whole batch, and gradients of their mean square."""
    model = Model()
    out = model(ids)
    out.square().mean().backward()
    return out, gradients(model)


def words() -> Tensor:
    return torch.randint(7, (4, 29), generator=torch.Generator().manual_seed(6))


def data_parallel(rank: int, world: int) -> None:
    ids = words()
    want, known = one_process(ids)
    model = DistributedDataParallel(Model())
    mine = slice(rank * 4 // world, (rank + 1) * 4 // world)
    out = model(ids[mine])
    assert_rel("out", out, want[mine], TOLERANCE)
    out.square().mean().backward()
    for name, gradient in gradients(model.module).items():
        assert_rel(name, gradient, known[name], TOLERANCE)


def fully_sharded(rank: int, world: int) -> None:
    ids = words()
    want, known = one_process(ids)
    model = Model()
    mesh = init_device_mesh("cpu", (world,))
    fully_shard(model.layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    mine = slice(rank * 4 // world, (rank + 1) * 4 // world)
    out = model(ids[mine])
    assert_rel("out", out, want[mine], TOLERANCE)
    out.square().mean().backward()
    for name, weight in model.named_parameters():
        assert weight.to_local().shape[0] <= -(-weight.shape[0] // world)
        assert_rel(name, weight.grad.full_tensor(), known[name], TOLERANCE)


def split_sequence_in_data_parallel(rank: int, world: int) -> None:
    ids = words()
    want, known = one_process(ids)
    model = Model()
    model.layer = SplitSequence(model.layer, dist.new_group())
    parallel = DistributedDataParallel(model)
    part = partition(29, world)[rank]
    out = parallel(ids[:, part.start : part.stop])
    assert_rel("out", out, want[:, part.start : part.stop], TOLERANCE)
    # the mean over ranks of what each has, times the number of ranks
    (out.square().sum() / want.numel() * world).backward()
    for name, gradient in gradients(model).items():
        assert_rel(name, gradient, known[name.replace("layer.layer.", "layer.")], TOLERANCE)


def split_sequence_fully_sharded(rank: int, world: int) -> None:
    ids = words()
    _, known = one_process(ids)
    model = Model()
    model.layer = SplitSequence(model.layer, dist.new_group())
    fully_shard(model, mesh=init_device_mesh("cpu", (world,)))
    part = partition(29, world)[rank]
    out = model(ids[:, part.start : part.stop])
    (out.square().sum() / (4 * 29) * world).backward()
    for name, weight in model.named_parameters():
        gradient = weight.grad.full_tensor()
        assert_rel(name, gradient, known[name.replace("layer.layer.", "layer.")], TOLERANCE)


def lost(rank: int, call: Callable[[], object], *, says: str) -> None:
    """The others end with an error that says so, and soon."""
    start = time.perf_counter()
    with pytest.raises(RuntimeError, match=f"rank {rank} of .* lost the others; one has died") as e:
        call()
    assert says in str(e.value)
    assert time.perf_counter() - start < 30


def a_rank_that_dies_is_an_error(rank: int, world: int) -> None:
    split, x = SplitSequence(made()), tokens(8)
    split(x)
    if rank == 1:
        os._exit(0)
    lost(rank, lambda: split(x), says="comparing arguments")


def a_rank_that_dies_is_an_error_to_all_who_stay(rank: int, world: int) -> None:
    split, x = SplitSequence(made()), tokens(8)
    split(x)
    if rank == 1:
        os._exit(0)
    start = time.perf_counter()
    lost(rank, lambda: split(x), says="comparing arguments")
    # the group's timeout is 4 seconds; nobody has learned of it because another one ended
    time.sleep(max(0.0, start + 6 - time.perf_counter()))
    assert time.perf_counter() - start < 7


def a_rank_that_dies_before_going_backward_is_an_error(rank: int, world: int) -> None:
    out, _ = SplitSequence(made())(tokens(8))
    if rank == 1:
        os._exit(0)
    lost(rank, out.sum().backward, says="exchanging gradients of states")


def a_rank_that_hangs_is_an_error(rank: int, world: int) -> None:
    split, x = SplitSequence(made()), tokens(8)
    if rank == 1:
        # the group's timeout is 4 seconds
        time.sleep(8)
        os._exit(0)
    lost(rank, lambda: split(x), says="comparing arguments")


def work_is_counted(rank: int, world: int) -> None:
    layer, merges, calls = made(), 0, 0

    def count(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        nonlocal merges, calls
        merges, calls = merges + inputs[0][..., 0].numel(), calls + 1

    layer.layers[0].compose.register_forward_pre_hook(count)
    for length in (world, 101, 256 * world, 1003):
        lengths = [len(part) for part in partition(length, world)]
        start = sum(lengths[:rank])
        x = tokens(length)[:1, start : start + lengths[rank]]
        for output in ("all", "last"):
            merges = calls = 0
            split = SplitSequence(layer)
            split(x, output=output)
            known = work(lengths, rank, last=output == "last")
            assert (merges, calls) == (known.merges, known.calls)
            assert split.ranks.sent_bytes == 32 + known.states * 2 * H * 8
            # all ranks together: little more than one process
            if length > 100:
                shared = torch.tensor(merges)
                dist.all_reduce(shared)
                assert shared < (2 if output == "all" else 1) * length + 60
