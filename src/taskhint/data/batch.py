"""Batches without padding: examples of equal size stand together, all tokens lie flat in one row.

Shapes: N input tokens of all examples, M of them in the tails, S scored ones, V symbols.

The last token of an example is never an input: nothing is predicted from it. A group's `tail` is
the number of last input positions that hold every prediction of its examples; the last block of a
decoder computes nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from taskhint.tasks.random_bits import Ints
from taskhint.tasks.task import Examples, Task


@dataclass(frozen=True)
class Group:
    """Examples with the same number of input tokens."""

    count: int
    length: int
    tail: int


@dataclass(frozen=True)
class Batch:
    groups: tuple[Group, ...]
    tokens: Tensor  # (N,) inputs
    inputs: Tensor  # (N,) symbols before ⊥ in the token's example
    targets: Tensor  # (S,) the token that follows each scored position
    scored: (
        Tensor | None
    )  # (S,) scored positions among the M tail positions; None if it is all of them
    # (examples,) which row of the given examples each one was, in the order of the groups
    rows: Ints
    ids: Tensor | None = None  # (N,) position ids, where they were drawn for training
    next_ids: Tensor | None = None  # (N,) that of the token after each one

    def to(self, device: torch.device) -> Batch:
        """The same batch with its tensors on a device."""
        moved: dict[str, Any] = {
            f.name: _moved(value, device)
            for f in fields(self)
            if isinstance(value := getattr(self, f.name), Tensor)
        }
        return replace(self, **moved)

    def rectangles(self) -> Iterator[Tensor]:
        """The tokens of each group, (B, T)."""
        parts = self.tokens.split([group.count * group.length for group in self.groups])
        for group, part in zip(self.groups, parts, strict=True):
            yield part.view(group.count, group.length)

    def tail_index(self) -> Tensor:
        """(M,) the flat numbers of the tail positions of each example."""
        device = self.tokens.device
        first, parts = 0, []
        for g in self.groups:
            rows = first + torch.arange(g.count, device=device)[:, None] * g.length
            places = torch.arange(g.length - g.tail, g.length, device=device)
            parts.append((rows + places).flatten())
            first += g.count * g.length
        return torch.cat(parts)

    def with_drawn_ids(self, draw: Callable[[Ints, Ints], Ints | None]) -> Batch:
        """With position ids for training: `draw` gets the rows and (B, T) tokens of equally long
        examples and gives (B, T + 1) ids.
        """
        ends = np.cumsum([group.count for group in self.groups])[:-1]
        drawn = [
            draw(rows, tokens.numpy())
            for tokens, rows in zip(self.rectangles(), np.split(self.rows, ends), strict=True)
        ]
        found = [ids for ids in drawn if ids is not None]
        if not found:
            return self
        own, following = (
            torch.from_numpy(np.concatenate([ids[:, part].ravel() for ids in found]))
            for part in (slice(None, -1), slice(1, None))
        )
        return replace(self, ids=own, next_ids=following)

    @property
    def scored_per_example(self) -> Ints:
        """(examples,) how many predictions each example asks for, in the order of the groups."""
        tails = np.repeat(
            [group.tail for group in self.groups], [group.count for group in self.groups]
        )
        if self.scored is None:
            return tails
        owners = np.repeat(np.arange(len(tails)), tails)
        return np.bincount(owners[self.scored.cpu().numpy()], minlength=len(tails))


def _moved(value: Tensor, device: torch.device) -> Tensor:
    """To a GPU from pinned memory, so that the copy does not wait for what runs there."""
    if device.type != "cuda" or value.is_cuda or not torch.cuda.is_available():
        return value.to(device)
    return value.pin_memory().to(device, non_blocking=True)


def make_batch(task: Task, parts: Iterable[Examples]) -> Batch:
    """Lay examples flat, the shortest group first."""
    pieces = sorted(_pieces(task, parts), key=lambda piece: piece.group.length)
    scored = np.concatenate([piece.scored for piece in pieces])
    return Batch(
        groups=tuple(piece.group for piece in pieces),
        tokens=torch.from_numpy(np.concatenate([piece.tokens for piece in pieces])),
        inputs=torch.from_numpy(np.concatenate([piece.inputs for piece in pieces])),
        targets=torch.from_numpy(np.concatenate([piece.targets for piece in pieces])[scored]),
        scored=None if scored.all() else torch.from_numpy(np.flatnonzero(scored)),
        rows=np.concatenate([piece.rows for piece in pieces]),
    )


@dataclass(frozen=True)
class Piece:
    group: Group
    tokens: Ints
    inputs: Ints
    targets: Ints
    scored: np.ndarray[tuple[int], np.dtype[np.bool_]]
    rows: Ints


def _pieces(task: Task, parts: Iterable[Examples]) -> Iterable[Piece]:
    """One piece per part and size: a part has several sizes only where its answers differ in
    length.
    """
    first_row = 0
    for part in parts:
        scored = task.scored(part)
        for size in np.unique(part.sizes):
            rows = np.flatnonzero(part.sizes == size)
            yield _piece(part, scored[rows, :size], rows, first_row)
        first_row += len(part)


def _piece(
    part: Examples, scored: np.ndarray[tuple[int, int], np.dtype[np.bool_]], rows: Ints, first: int
) -> Piece:
    count, size = scored.shape
    tokens = part.tokens[rows, :size]
    tail = int(size - scored.any(axis=0).argmax())
    return Piece(
        group=Group(count, size - 1, tail),
        tokens=tokens[:, :-1].ravel(),
        inputs=np.repeat(part.inputs[rows], size - 1),
        targets=tokens[:, size - tail :].ravel(),
        scored=scored[:, size - tail :].ravel(),
        rows=rows + first,
    )
