"""One sequence over several processes: a step of training, and its gradients beside one process's.

torchrun --nproc-per-node 4 examples/split_sequence.py
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

import prlstm
from prlstm import distributed

TOKENS, FEATURES, HIDDEN = 10_007, 8, 32


def main() -> None:
    """What one rank does."""
    on_gpus = torch.cuda.is_available()
    # a rank that dies is an error on the others, at the latest after this time
    dist.init_process_group("nccl" if on_gpus else "gloo", timeout=timedelta(seconds=25))
    rank, world = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", rank % torch.cuda.device_count()) if on_gpus else "cpu"
    torch.set_num_threads(1)
    # equal weights on every rank
    torch.manual_seed(0)
    layer = prlstm.PRLSTM(FEATURES, HIDDEN, num_layers=2, batch_first=True, device=device)
    read_out = nn.Linear(HIDDEN, 1, device=device)
    model = nn.ModuleList([layer, read_out])

    part = distributed.partition(TOKENS, world)[rank]
    # a real program would read its own part alone
    x = torch.randn(1, TOKENS, FEATURES).to(device)
    y = x.cumsum(1)[..., :1].sin()

    split = distributed.SplitSequence(layer)
    out, _ = split(x[:, part.start : part.stop])
    # the share of this rank's tokens in the mean over all
    loss = (read_out(out) - y[:, part.start : part.stop]).square().sum() / TOKENS
    loss.backward()
    distributed.sum_gradients(model)
    mine = [weight.grad.clone() for weight in model.parameters()]
    sent = split.ranks.sent_bytes
    print(f"rank {rank}: tokens {part.start} to {part.stop - 1}, {sent:,} bytes sent")

    model.zero_grad()
    (read_out(layer(x)[0]) - y).square().mean().backward()
    for weight, gradient in zip(model.parameters(), mine, strict=True):
        torch.testing.assert_close(gradient, weight.grad, rtol=1e-3, atol=1e-5)
    if rank == 0:
        print("The gradients are those of one process.")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
