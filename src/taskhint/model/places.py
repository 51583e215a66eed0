"""Where each flat token stands: what positions and temperatures need to know about it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from taskhint.data.batch import Batch
from taskhint.model.positions import Positions


@dataclass(frozen=True)
class Places:
    """One entry per token, (N,) each.

    `ids` is what the position scheme goes by: the index, unless the scheme says otherwise.
    `equal_ids`: examples with the same number of tokens have the same ids. `stream` (N, D) is what
    queries are made of, for temperatures that ask.
    """

    index: Tensor  # 0 for the first token of an example
    inputs: Tensor  # symbols before ⊥ in its example
    sequence: Tensor  # tokens of its whole example, prompt and answer
    ids: Tensor
    equal_ids: bool = True
    stream: Tensor | None = None

    def select(self, index: Tensor) -> Places:
        return replace(
            self,
            index=self.index[index],
            inputs=self.inputs[index],
            sequence=self.sequence[index],
            ids=self.ids[index],
        )

    def with_stream(self, stream: Tensor) -> Places:
        return replace(self, stream=stream)

    @classmethod
    def of_batch(cls, batch: Batch, positions: Positions) -> Places:
        device = batch.tokens.device
        index = torch.cat([torch.arange(g.length).repeat(g.count) for g in batch.groups]).to(
            device
        )
        sequence = torch.cat(
            [torch.full((g.count * g.length,), g.length + 1) for g in batch.groups]
        ).to(device)
        if batch.ids is not None:
            return cls(index, batch.inputs, sequence, batch.ids, equal_ids=False)
        return cls(index, batch.inputs, sequence, positions.test_ids(index, sequence))

    @classmethod
    def of_rectangle(
        cls, inputs: Tensor, sequence: int, start: int, count: int, positions: Positions
    ) -> Places:
        """Tokens start..start+count of B examples that are equally long; `inputs` is (B,)."""
        rows = len(inputs)
        index = torch.arange(start, start + count, device=inputs.device).repeat(rows)
        whole = torch.full((rows * count,), sequence, device=inputs.device)
        return cls(index, inputs.repeat_interleave(count), whole, positions.test_ids(index, whole))


def tail_index(batch: Batch) -> Tensor:
    """(M,) the flat numbers of the tail positions of each example."""
    first, parts = 0, []
    for g in batch.groups:
        rows = first + torch.arange(g.count)[:, None] * g.length
        parts.append((rows + torch.arange(g.length - g.tail, g.length)).flatten())
        first += g.count * g.length
    return torch.cat(parts).to(batch.tokens.device)
