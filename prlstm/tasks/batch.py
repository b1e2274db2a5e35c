"""What a sampler hands out: words, their answers, and which answers count."""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from prlstm.tasks.check import read_count


@dataclass(frozen=True)
class Batch:
    """Words and their answers, padded with zeros on the right where rows are shorter.

    `input` (B, L) and `target` (B, O) hold token ids. `mask` (B, O) marks the answers that the
    accuracy counts, `loss_mask` (B, O) those that the loss counts: all that a row has.
    `lengths` (B,) is the number of input tokens of every row.
    """

    input: Tensor
    target: Tensor
    mask: Tensor
    loss_mask: Tensor
    lengths: Tensor

    def __len__(self) -> int:
        return self.input.shape[0]

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on another device."""
        return Batch(*(getattr(self, field.name).to(device) for field in fields(self)))

    def split(self, rows: int) -> "list[Batch]":
        """Batches of `rows` rows each: the steps that were drawn in one call."""
        if len(self) % read_count("rows", rows):
            raise ValueError(f"rows={rows}: expected a divisor of the {len(self)} rows")
        parts = (getattr(self, field.name).split(rows) for field in fields(self))
        return [Batch(*part) for part in zip(*parts, strict=True)]
