"""How a Transformer knows where a token stands.

Shapes: features (B, T, E), queries and keys (B, heads, T, size), what is added to the logits of
attention (heads, T, T) or (B, heads, T, T).
"""

import torch
from torch import Tensor, nn

from prlstm.cells.precision import wide_type
from prlstm.models.reading import Linear

LONGEST_WAVE = 10_000.0
SIGMA = 0.02


def _frequencies(size: int, like: Tensor) -> Tensor:
    """One for every two features, falling."""
    step = torch.arange(size // 2, dtype=wide_type(like.dtype), device=like.device)
    return LONGEST_WAVE ** (-2 / size * step)


def sin_cos(position: Tensor, size: int) -> Tensor:
    """All sines, then all cosines, of whole numbers (...) at falling frequencies: (..., size).

    Positions are computed in float32 at least: half a precision cannot tell 499 from 500.
    """
    angle = position[..., None] * _frequencies(size, position)
    return torch.cat([angle.sin(), angle.cos()], -1)


def count_down(x: Tensor, total: int | Tensor) -> Tensor:
    """The sines and cosines of positions that count down to 1 at the end of every row.

    The last of `total` positions, one number or one for each row (B,), always has the number 1.
    """
    place = torch.arange(x.shape[1], device=x.device)
    number = (total[:, None] if isinstance(total, Tensor) else total) - place
    return sin_cos(number.to(wide_type(x.dtype)), x.shape[2]).to(x.dtype)


def rotated(x: Tensor) -> Tensor:
    """Neighbouring pairs of features, turned by an angle that grows with the position."""
    angle = torch.arange(x.shape[-2], device=x.device)[:, None] * _frequencies(x.shape[-1], x)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, odd * cos + even * sin], -1).flatten(-2)


def slopes(heads: int, like: Tensor) -> Tensor:
    """How fast the attention of each head falls with the distance: powers of two, evenly.

    Where the heads are no power of two themselves, every other one of twice as many fills up.
    """
    power = 1 << heads.bit_length() - 1
    head = torch.arange(1, power + 1, dtype=like.dtype, device=like.device)
    found = 2 ** (-8 * head / power)
    if power < heads:
        found = torch.cat([found, slopes(2 * power, like)[::2][: heads - power]])
    return found


def distance_penalty(heads: int, like: Tensor) -> Tensor:
    """What ALiBi adds: minus the distance, half a step less to the left, times a slope."""
    place = torch.arange(like.shape[-2], device=like.device)
    ahead = place[:, None] - place
    distance = -ahead.abs() + 0.5 * (ahead > 0)
    wide = like.to(wide_type(like.dtype))
    return (slopes(heads, wide)[:, None, None] * distance.to(wide.dtype)).to(like.dtype)


class RelativePositions(nn.Module):
    """Attention that knows distances (Transformer-XL).

    logit(t, s) = (q_t + u) k_s + (q_t + v) R(t - s), with R a map of the sines and cosines of the
    signed distance, and u, v learned for each head.
    """

    def __init__(self, embedding_size: int, heads: int) -> None:
        super().__init__()
        size = embedding_size // heads
        self.heads = heads
        self.key = Linear(embedding_size, embedding_size, bias=False)
        self.content_bias = nn.Parameter(torch.empty(heads, size))
        self.relative_bias = nn.Parameter(torch.empty(heads, size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the biases anew."""
        nn.init.normal_(self.content_bias, std=SIGMA)
        nn.init.normal_(self.relative_bias, std=SIGMA)

    def forward(self, query: Tensor) -> tuple[Tensor, Tensor]:
        """The query for the content, and what the distance adds, before scaling."""
        length = query.shape[-2]
        place = torch.arange(length, device=query.device)
        # line T - 1 + d holds the distance d
        distance = torch.arange(1 - length, length, device=query.device)
        waves = sin_cos(distance.to(wide_type(query.dtype)), self.key.in_features)
        key = self.key(waves.to(query.dtype))
        key = key.view(2 * length - 1, self.heads, -1).transpose(0, 1)
        logits = (query + self.relative_bias[:, None]) @ key.mT
        index = (place[:, None] - place + length - 1).expand(*logits.shape[:-1], length)
        return query + self.content_bias[:, None], logits.gather(-1, index)
