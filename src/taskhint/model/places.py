"""Where each flat token stands: what positions and temperatures need to know about it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from taskhint.data.batch import Batch
from taskhint.model.positions import Positions
from taskhint.system.errors import UserError
from taskhint.tasks.task import Task


@dataclass(frozen=True)
class Places:
    """One entry per token, (N,) each.

    `ids` is what the position scheme goes by: the index, unless the scheme says otherwise.
    `next_ids` is that of the token after each one, for schemes that ask. `equal_ids`: examples
    with the same number of tokens have the same ids. `stream` (N, D) is what queries are made of,
    for temperatures that ask.
    """

    index: Tensor  # 0 for the first token of an example
    inputs: Tensor  # symbols before ⊥ in its example
    sequence: Tensor  # tokens of its whole example, prompt and answer
    ids: Tensor
    equal_ids: bool = True
    next_ids: Tensor | None = None
    stream: Tensor | None = None

    def select(self, index: Tensor) -> Places:
        return replace(
            self,
            index=self.index[index],
            inputs=self.inputs[index],
            sequence=self.sequence[index],
            ids=self.ids[index],
            next_ids=None if self.next_ids is None else self.next_ids[index],
        )

    def with_stream(self, stream: Tensor) -> Places:
        return replace(self, stream=stream)

    @classmethod
    def of_batch(cls, batch: Batch, positions: Positions, task: Task | None = None) -> Places:
        device = batch.tokens.device
        index = torch.cat(
            [torch.arange(g.length, device=device).repeat(g.count) for g in batch.groups]
        )
        sequence = torch.cat(
            [torch.full((g.count * g.length,), g.length + 1, device=device) for g in batch.groups]
        )
        if batch.ids is not None:
            return cls(index, batch.inputs, sequence, batch.ids, False, batch.next_ids)
        if positions.reads_tokens:
            parts = [_token_ids(positions, task, tokens, 0) for tokens in batch.rectangles()]
            own, following = (torch.cat(part) for part in zip(*parts, strict=True))
            return cls(index, batch.inputs, sequence, own, False, following)
        return cls._by_index(index, batch.inputs, sequence, positions)

    @classmethod
    def of_rectangle(
        cls,
        inputs: Tensor,
        sequence: int,
        start: int,
        count: int,
        positions: Positions,
        task: Task | None = None,
        tokens: Tensor | None = None,
    ) -> Places:
        """Tokens start..start+count of B examples that are equally long; `inputs` is (B,).

        Schemes that read tokens need the task and all (B, start + count) tokens so far.
        """
        rows = len(inputs)
        index = torch.arange(start, start + count, device=inputs.device).repeat(rows)
        whole = torch.full((rows * count,), sequence, device=inputs.device)
        each = inputs.repeat_interleave(count)
        if positions.reads_tokens:
            assert tokens is not None
            own, following = _token_ids(positions, task, tokens, start)
            return cls(index, each, whole, own, False, following)
        return cls._by_index(index, each, whole, positions)

    @classmethod
    def _by_index(
        cls, index: Tensor, inputs: Tensor, sequence: Tensor, positions: Positions
    ) -> Places:
        following = positions.test_ids(index + 1, sequence) if positions.reads_next() else None
        own = positions.test_ids(index, sequence)
        return cls(index, inputs, sequence, own, next_ids=following)


def _token_ids(
    positions: Positions, task: Task | None, tokens: Tensor, start: int
) -> tuple[Tensor, Tensor]:
    """Flat ids of (B, T) tokens from place `start` on, and those of the tokens after them."""
    if task is None:
        raise UserError(
            f"positions {positions.kind!r} depend on the task: "
            "make the Decoder with its tasks, not with their names"
        )
    ids = torch.from_numpy(positions.token_ids(tokens.cpu().numpy(), task)).to(tokens.device)
    return ids[:, start:-1].flatten(), ids[:, start + 1 :].flatten()
