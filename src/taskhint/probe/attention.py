"""Where attention goes, and how sharp it stays as inputs grow.

Shapes: B examples, L blocks, H heads, A answer positions (the queries), T tokens, G kinds of keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from taskhint.probe.gather import Gathered, Rows, gather
from taskhint.probe.shares import Floats, Means, means_of
from taskhint.probe.view import Subject, View, view_of_prompt, views
from taskhint.tasks import Increment, Sort


@dataclass(frozen=True)
class AttentionMaps:
    """The attention weights of one sequence: (L, H, T, T), from the token of the row to that of
    the column.
    """

    tokens: tuple[str, ...]
    inputs: int
    weights: Floats


def attention_maps(subject: Subject, prompt: list[int]) -> AttentionMaps:
    view = view_of_prompt(subject, prompt)
    weights = torch.stack([_weights(view, block)[0] for block in range(subject.depth)])
    tokens = tuple(subject.task.vocab.words(view.tokens[0].tolist()))
    return AttentionMaps(tokens, view.inputs, weights.double().numpy())


@dataclass(frozen=True)
class AttentionByLength:
    """Means over the answer positions of each sequence, then over sequences, by input length.

    shares: (L, H, G) how much of the attention goes to keys of each kind largest: (L, H) the
    largest share that one symbol has, all of its copies together entropy: (L, H) the weights'
    entropy over ln(keys in sight): 0 for one key, 1 for all keys alike
    """

    kinds: tuple[str, ...]
    shares: dict[int, Means]
    largest: dict[int, Means]
    entropy: dict[int, Means]


def attention_by_length(
    subject: Subject, lengths: Sequence[int], examples: int
) -> AttentionByLength:
    return attention_curves(subject, gather(subject, lengths, examples, [attention_rows]))


def attention_rows(view: View) -> Rows:
    """Means over the answer positions of each sequence; nothing where there is no
    such position.
    """
    if view.answer.start == view.answer.stop:
        return {}
    blocks = [_in_block(view, block) for block in range(view.subject.depth)]
    parts = [torch.stack(part, dim=1).double().numpy() for part in zip(*blocks, strict=True)]
    return dict(
        zip(("attention shares", "attention largest", "attention entropy"), parts, strict=True)
    )


def _in_block(view: View, block: int) -> tuple[Tensor, Tensor, Tensor]:
    """(B, H, G) shares, (B, H) largest, (B, H) entropy."""
    weights = _weights(view, block)[:, :, view.answer]
    named = [(weights * mask[:, None]).sum(dim=3).mean(dim=2) for mask in key_kinds(view).values()]
    shares = torch.stack([*named, 1 - torch.stack(named).sum(dim=0)], dim=2)
    return (
        shares,
        _largest_symbol(view, weights).mean(dim=2),
        _relative_entropy(view, weights).mean(dim=2),
    )


def attention_curves(subject: Subject, gathered: Gathered) -> AttentionByLength:
    """Lengths without an answer position (sorting one symbol) are left out."""
    measured = {n: rows for n, rows in gathered.items() if "attention shares" in rows}
    shares, largest, entropy = (
        {n: means_of(rows[f"attention {name}"]) for n, rows in measured.items()}
        for name in ("shares", "largest", "entropy")
    )
    return AttentionByLength(tuple(_kinds_of(subject)), shares, largest, entropy)


def key_kinds(view: View) -> dict[str, Tensor]:
    """(B, A, T) true where a key is of a kind, as seen from each answer position. No key is of two
    kinds.

    Sorting: keys of the same symbol as the query, keys of the smallest larger symbol, and ⊥.
    Incrementing: the digit that decides the next one of the answer, the digit that decided this
    one, and ⊥.
    """
    keys, queries = view.tokens[:, None, :], view.tokens[:, view.answer, None]
    delimiter = (keys == view.subject.task.vocab.delimiter).expand(-1, queries.shape[1], -1)
    if isinstance(view.subject.task, Sort):
        return {
            "same symbol": keys == queries,
            "successor": keys == view.next_larger[:, :, None],
            "⊥": delimiter,
        }
    if isinstance(view.subject.task, Increment):
        here = torch.arange(view.tokens.shape[1])
        used = (2 * view.inputs - here[view.answer])[:, None]
        at = [(here == place).expand(len(keys), -1, -1) for place in (used - 1, used)]
        return {"digit needed next": at[0], "digit just used": at[1], "⊥": delimiter}
    return {"same symbol": keys == queries, "⊥": delimiter}


def _kinds_of(subject: Subject) -> list[str]:
    view = next(views(subject, 2, 1))
    return [*key_kinds(view), "rest"]


def _weights(view: View, block: int) -> Tensor:
    """(B, H, T, T)"""
    return view.trace[f"blocks.{block}.attention.weights"].float()


def _largest_symbol(view: View, weights: Tensor) -> Tensor:
    """(B, H, A) the largest sum over the copies of one token."""
    same = (view.tokens[:, :, None] == view.tokens[:, None, :]).to(weights.dtype)
    return (weights @ same[:, None]).amax(dim=3)


def _relative_entropy(view: View, weights: Tensor) -> Tensor:
    """(B, H, A)"""
    keys_in_sight = torch.arange(view.answer.start + 1, view.answer.stop + 1)
    entropy = torch.special.entr(weights).sum(dim=3)
    return entropy / keys_in_sight.log().to(weights.dtype)


def strongest_head(curves: AttentionByLength, kind: str) -> tuple[int, int]:
    """Block and head with the largest share on a kind of key in the last block, at the shortest
    length measured.
    """
    shortest = min(curves.shares)
    last = curves.shares[shortest].mean[-1, :, curves.kinds.index(kind)]
    return curves.shares[shortest].mean.shape[0] - 1, int(np.argmax(last))
