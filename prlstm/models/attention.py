"""Attention and the layers of a Transformer, normalised after each step."""

import itertools
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prlstm.cells.initial import truncated_normal
from prlstm.models.positions import SIGMA, RelativePositions, distance_penalty, rotated
from prlstm.models.reading import Linear
from prlstm.stream import uniform

POSITIONS = ("none", "sin_cos", "rotary", "alibi", "relative")


class Embedding(nn.Module):
    """One-hot vectors to features, times the root of their number."""

    def __init__(self, input_size: int, embedding_size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(embedding_size, input_size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        truncated_normal(self.weight, SIGMA)

    def forward(self, x: Tensor) -> Tensor:
        """Shapes: `x` (B, T, D), features (B, T, E)."""
        return F.linear(x, self.weight) * math.sqrt(self.weight.shape[0])


class Attention(nn.Module):
    """Several heads, without biases.

    While `fused` is set, the weights of the attention are never written to memory.
    """

    fused = True

    def __init__(self, embedding_size: int, heads: int, positions: str = "none") -> None:
        super().__init__()
        self.heads, self.positions = heads, positions
        self.query, self.key, self.value, self.out = (
            Linear(embedding_size, embedding_size, bias=False) for _ in range(4)
        )
        self.relative = (
            RelativePositions(embedding_size, heads) if positions == "relative" else None
        )

    def forward(self, x: Tensor, others: Tensor, mask: Tensor | None = None) -> Tensor:
        """From `x` (B, T, E) to `others` (B, S, E), where the mask is true."""
        query = self._split(self.query(x))
        key, value = self._split(self.key(others)), self._split(self.value(others))
        bias = None
        scale = 1 / math.sqrt(query.shape[-1])
        if self.positions == "rotary":
            query, key = rotated(query), rotated(key)
        elif self.positions == "alibi":
            bias = distance_penalty(self.heads, query)
        elif self.relative is not None:
            query, bias = self.relative(query)
            bias = bias * scale
        if mask is not None:
            hidden = torch.zeros_like(mask, dtype=x.dtype).masked_fill(~mask, -torch.inf)
            bias = hidden if bias is None else bias + hidden
        if self.fused:
            # one tensor for all rows and heads, as the fused forms ask
            if bias is not None:
                bias = bias.expand(*query.shape[:-1], key.shape[-2])
            mixed = F.scaled_dot_product_attention(query, key, value, bias)
        else:
            logits = query @ key.mT * scale
            mixed = torch.softmax(logits if bias is None else logits + bias, -1) @ value
        out: Tensor = self.out(mixed.transpose(1, 2).flatten(2))
        return out

    def _split(self, x: Tensor) -> Tensor:
        rows, length, size = x.shape
        return x.view(rows, length, self.heads, size // self.heads).transpose(1, 2)


Drop = Callable[[Tensor], Tensor]


class Dropout(nn.Module):
    """Dropout in training, and at evaluation only where asked for."""

    def __init__(self, share: float, always: bool) -> None:
        super().__init__()
        self.share, self.always = share, always

    def forward(self, noise: Tensor | None) -> Drop:
        """What drops features, one time after the other: with a key always the same ones."""
        if self.share == 0 or not (self.training or self.always):
            return lambda x: x
        if noise is None:
            return lambda x: F.dropout(x, self.share)
        times = itertools.count()

        def drop(x: Tensor) -> Tensor:
            kept = uniform(noise, next(times), x.numel()).view_as(x) >= self.share
            return torch.where(kept, x / (1 - self.share), 0)

        return drop


class Layer(nn.Module):
    """Attention to oneself, perhaps attention to others, then a map of each place.

    Every step is added to what it started from, and normalised.
    """

    def __init__(
        self,
        embedding_size: int,
        heads: int,
        widening: int,
        positions: str = "none",
        cross: bool = False,
    ) -> None:
        super().__init__()
        self.attention = Attention(embedding_size, heads, positions)
        self.cross = Attention(embedding_size, heads) if cross else None
        self.widen = Linear(embedding_size, widening * embedding_size)
        self.narrow = Linear(widening * embedding_size, embedding_size)
        self.norms = nn.ModuleList(nn.LayerNorm(embedding_size) for _ in range(2 + cross))

    def forward(
        self,
        h: Tensor,
        drop: Drop,
        mask: Tensor | None = None,
        others: Tensor | None = None,
        others_mask: Tensor | None = None,
    ) -> Tensor:
        """Features (B, T, E) after the layer; `others` (B, S, E) are those attended to besides."""
        norms = iter(self.norms)
        h = next(norms)(h + drop(self.attention(h, h, mask)))
        if self.cross is not None:
            h = next(norms)(h + drop(self.cross(h, others, others_mask)))
        narrowed = self.narrow(torch.relu(self.widen(h)))
        after: Tensor = next(norms)(h + drop(narrowed))
        return after
