"""Transformers: the encoder alone on the tape, and encoder and decoder."""

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from prlstm.models.attention import POSITIONS, Drop, Dropout, Embedding, Layer
from prlstm.models.options import Options, TapeOptions, option
from prlstm.models.positions import count_down
from prlstm.models.reading import Linear, Reading


@dataclass(frozen=True, kw_only=True)
class TransformerOptions(Options):
    """Encoder and decoder."""

    embedding_size: int = option(64, "Features of a token.")
    num_layers: int = option(5, "Layers of the encoder, and of the decoder.", below=1000)
    num_heads: int = option(8, "Heads of attention; they divide the embedding size.")
    widening: int = option(4, "Features inside the feed-forward map of a layer, as a multiple.")
    dropout: float = option(0.1, "Share of features that are dropped.", least=0, below=1)
    dropout_at_evaluation: bool = option(False, "Drop at evaluation too, as the benchmark did.")
    positions: str = option("sin_cos", "How a token knows its place.", among=POSITIONS)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.embedding_size % self.num_heads:
            raise ValueError(
                f"num_heads={self.num_heads}: expected a divisor of "
                f"embedding_size={self.embedding_size}"
            )
        if self.positions in ("sin_cos", "relative") and self.embedding_size % 2:
            raise ValueError(
                f"embedding_size={self.embedding_size}: expected an even number, "
                f"positions={self.positions!r} are as many sines as cosines"
            )
        if self.positions == "rotary" and self.embedding_size // self.num_heads % 2:
            raise ValueError(
                f"num_heads={self.num_heads}: rotary positions turn pairs of features, expected "
                f"an even size of a head, embedding_size={self.embedding_size} / num_heads"
            )


@dataclass(frozen=True, kw_only=True)
class EncoderOptions(TransformerOptions, TapeOptions):
    """The encoder alone."""

    causal: bool = option(False, "Look only at earlier cells.")
    window: int | None = option(
        None, "Look only at cells at most half of this away, to both sides."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.autoregressive and not self.causal:
            warnings.warn(
                "autoregressive=True without causal=True: with target= every cell sees the answers "
                "that it is asked for",
                stacklevel=5,
            )


class Encoder(nn.Module):
    """Tokens to features."""

    def __init__(self, input_size: int, options: TransformerOptions) -> None:
        super().__init__()
        self.counts_down = options.positions == "sin_cos"
        self.embedding = Embedding(input_size, options.embedding_size)
        self.layers = _layers(options)

    def forward(self, x: Tensor, lengths: Tensor | None, mask: Tensor | None, drop: Drop) -> Tensor:
        """Shapes: `x` (B, T, D), `lengths` (B,), `mask` (.., T, T), features (B, T, E)."""
        h: Tensor = self.embedding(x)
        if self.counts_down:
            h = drop(h + count_down(h, x.shape[1] if lengths is None else lengths))
        for layer in self.layers:
            h = layer(h, drop, mask)
        return h


class EncoderNetwork(nn.Module):
    """The encoder over the tape; every cell sees the whole tape unless told otherwise."""

    def __init__(self, input_size: int, output_size: int, options: EncoderOptions) -> None:
        super().__init__()
        self.causal, self.window = options.causal, options.window
        self.encoder = Encoder(input_size, options)
        self.dropout = Dropout(options.dropout, options.dropout_at_evaluation)
        self.readout = Linear(options.embedding_size, output_size)

    def forward(self, x: Tensor, reading: Reading, target: Tensor | None = None) -> Tensor:
        """Shapes: `x` (B, T, D), logits (B, O, C)."""
        drop = self.dropout(reading.noise)
        h = self.encoder(x, reading.lengths, self._mask(x, reading.lengths), drop)
        logits: Tensor = self.readout(reading.of_whole(h))
        return logits

    def _mask(self, x: Tensor, lengths: Tensor | None) -> Tensor | None:
        if lengths is None and not self.causal and self.window is None:
            return None
        place = torch.arange(x.shape[1], device=x.device)
        behind = place[:, None] - place
        masks = [] if lengths is None else [inside(lengths, x.shape[1])]
        if self.causal:
            masks.append(behind >= 0)
        if self.window is not None:
            masks.append(behind.abs() <= self.window // 2)
        mask = masks[0]
        for more in masks[1:]:
            mask = mask & more
        # a cell behind the end of its row sees itself, so that no cell sees nothing
        return mask | (behind == 0)


class EncoderDecoderNetwork(nn.Module):
    """The encoder over the word, and a decoder that has read its own earlier answers.

    Without targets it answers greedily, one place at a time. Positions of the answers count down,
    so that the decoder knows how many there will be.
    """

    def __init__(self, input_size: int, output_size: int, options: TransformerOptions) -> None:
        super().__init__()
        self.output_size, self.counts_down = output_size, options.positions == "sin_cos"
        self.encoder = Encoder(input_size, options)
        self.dropout = Dropout(options.dropout, options.dropout_at_evaluation)
        # one more token: the start
        self.embedding = Embedding(output_size + 1, options.embedding_size)
        self.layers = _layers(options, cross=True)
        self.readout = Linear(options.embedding_size, output_size)

    def forward(self, x: Tensor, reading: Reading, target: Tensor | None = None) -> Tensor:
        """Shapes: `x` (B, L, D), `target` (B, O), logits (B, O, C)."""
        seen = None if reading.lengths is None else inside(reading.lengths, x.shape[1])
        drop = self.dropout(reading.noise)
        word = self.encoder(x, reading.lengths, seen, drop)

        def decoded(answered: Tensor) -> Tensor:
            return self._decode(answered, word, seen, reading.answer_counts, drop)

        # the start symbol, which is no class
        start = torch.full_like(x[:, :1, 0], self.output_size, dtype=torch.long)
        if target is not None:
            return decoded(torch.cat([start, target[:, :-1]], 1))
        answered, said = start, []
        for _ in range(reading.stop):
            said.append(decoded(answered)[:, -1:])
            answered = torch.cat([answered, said[-1].argmax(-1)], 1)
        return torch.cat(said, 1)

    def _decode(
        self,
        answered: Tensor,
        word: Tensor,
        seen: Tensor | None,
        counts: int | Tensor,
        drop: Drop,
    ) -> Tensor:
        """The logits (B, n, C) that follow n earlier answers (B, n), the start being the first."""
        place = torch.arange(answered.shape[1], device=answered.device)
        known = torch.arange(self.output_size + 1, device=answered.device)
        h = self.embedding((answered[..., None] == known).to(word.dtype))
        if self.counts_down:
            h = drop(h + count_down(h, counts))
        earlier = place[:, None] >= place
        for layer in self.layers:
            h = layer(h, drop, earlier, word, seen)
        logits: Tensor = self.readout(h)
        return logits


def _layers(options: TransformerOptions, cross: bool = False) -> nn.ModuleList:
    sizes = (options.embedding_size, options.num_heads, options.widening)
    return nn.ModuleList(Layer(*sizes, options.positions, cross) for _ in range(options.num_layers))


def inside(lengths: Tensor, width: int) -> Tensor:
    """Which places a row has: (B, 1, 1, width)."""
    return torch.arange(width, device=lengths.device) < lengths[:, None, None, None]
