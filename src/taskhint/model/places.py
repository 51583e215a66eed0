"""Where each flat token stands: what positions and temperatures need to know about it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from taskhint.data.batch import Batch


@dataclass(frozen=True)
class Places:
    """One entry per token, (N,) each."""

    position: Tensor  # 0 for the first token of an example
    inputs: Tensor  # symbols before ⊥ in its example
    sequence: Tensor  # tokens of its whole example, prompt and answer

    def select(self, index: Tensor) -> Places:
        return Places(self.position[index], self.inputs[index], self.sequence[index])

    @classmethod
    def of_batch(cls, batch: Batch) -> Places:
        position = torch.cat([torch.arange(g.length).repeat(g.count) for g in batch.groups])
        sequence = torch.cat([torch.full((g.count * g.length,), g.length + 1) for g in batch.groups])
        device = batch.tokens.device
        return cls(position.to(device), batch.inputs, sequence.to(device))

    @classmethod
    def of_rectangle(cls, inputs: Tensor, sequence: int, start: int, count: int) -> Places:
        """Tokens start..start+count of B examples that are equally long; `inputs` is (B,)."""
        rows = len(inputs)
        return cls(
            torch.arange(start, start + count, device=inputs.device).repeat(rows),
            inputs.repeat_interleave(count),
            torch.full((rows * count,), sequence, device=inputs.device),
        )


def tail_index(batch: Batch) -> Tensor:
    """(M,) the flat numbers of the tail positions of each example."""
    first, parts = 0, []
    for g in batch.groups:
        rows = first + torch.arange(g.count)[:, None] * g.length
        parts.append((rows + torch.arange(g.length - g.tail, g.length)).flatten())
        first += g.count * g.length
    return torch.cat(parts).to(batch.tokens.device)
