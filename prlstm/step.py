"""One more token for the rows of a batch, each at a count of its own: a value, and its gradients.

`prlstm.streams` does the same in place.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from prlstm.dispatch import Reader
from prlstm.lengths import TIME
from prlstm.state import State, agreed
from prlstm.tree import Node
from prlstm.tree.rows import Pending
from prlstm.tree.streams import Booleans, Increment, add_leaves, pending_after, replaced


def begin(layers: int, cell: str, *, batched: bool) -> State:
    """The state before the first token; its `final` is still to be made, `step` knows of what."""
    return State((), (Pending((), ()),) * layers, 0, cell, batched)


def step(
    readers: Sequence[Reader],
    between: Callable[[Tensor], Tensor],
    x: Tensor,
    state: State,
    active: Booleans | None,
) -> tuple[Tensor, State]:
    """H (B, H) after one token `x` (B, 1, D), or id (B, 1), of all rows or the active ones.

    `readers` are the layers; what one of them puts out goes through `between` to the next.
    """
    counts = np.array([state.seen] * len(x) if isinstance(state.seen, int) else state.seen)
    plan = Increment.of(counts, active)
    rows = plan.on(x.device)
    counts[plan.order] += 1
    after = counts.tolist()
    x = x.index_select(0, rows.order)
    finals: list[Node] = []
    pending: list[Pending] = []
    for k, (reader, earlier) in enumerate(zip(readers, state.pending, strict=True)):
        leaf, merge = reader.functions(x)
        leaves = leaf(x if k == 0 else between(x))
        block, prefix = add_leaves(merge, leaves, plan, rows, *earlier)
        pending.append(pending_after(earlier, plan, rows, block, prefix, after))
        here = tuple(t.squeeze(TIME) for t in prefix)
        before = tuple(t[k] for t in state.final) or tuple(
            t.new_zeros(len(counts), t.shape[-1]) for t in here
        )
        finals.append(replaced(before, rows.order, here))
        x = prefix[0]
    made = replace(
        state,
        final=tuple(torch.stack(tensors) for tensors in zip(*finals, strict=True)),
        pending=tuple(pending),
        seen=agreed(tuple(after)),
    )
    # a copy: a state is a value, whatever is done to an output
    return made.final[0][-1].clone(), made
