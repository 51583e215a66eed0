"""Attention inside groups of equally long examples, forward and backward in one step over flat
tensors.

Most examples are tiny, so what costs is not arithmetic but the number of tensors that are made,
joined and filled with zeros on the way. Here the rows of all groups are brought into the order of
their products at once, every product writes into its place there, and all rows are brought back at
once.

Shapes: N tokens, M queries (N, or the tail positions only), H heads, K head width; in a group B
examples, T tokens, A queries of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from taskhint.data.batch import Group

# attention weights are kept for the way back, (B, H, A, T) of them: only for short examples
LONGEST = 128


class PackedAttention(torch.autograd.Function):
    """q (M, H, K), kv (N, 2, H, K), scale (M, 1) or (M, H) -> (M, H, K)."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, kv: Tensor, scale: Tensor, groups: tuple[Group, ...], tail: bool
    ) -> Tensor:
        heads, width = q.shape[1:]
        asked, seen = head_order(groups, heads, tail), head_order(groups, heads, False, maps=2)
        queries = _rows(q * scale[:, :, None], asked.by_heads)
        keys, values = _rows(kv, seen.by_heads).view(2, -1, width)
        found = torch.empty_like(queries)
        kept = []
        for k, v, ask, answer in zip(
            *(_by_group(x, groups, heads, False) for x in (keys, values)),
            *(_by_group(x, groups, heads, tail) for x in (queries, found)),
            strict=True,
        ):
            weights = torch.baddbmm(
                hidden_keys(ask.shape[1], k.shape[1], q.dtype, q.device), ask, k.mT
            ).softmax(dim=2)
            torch.bmm(weights, v, out=answer)
            kept.append(weights)
        ctx.save_for_backward(q, scale, queries, keys, values, *kept)
        ctx.groups, ctx.tail, ctx.shape = groups, tail, kv.shape
        return _rows(found, asked.by_tokens).view(q.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, scale, queries, keys, values, *kept = ctx.saved_tensors
        groups, tail, heads = ctx.groups, ctx.tail, q.shape[1]
        asked, seen = head_order(groups, heads, tail), head_order(groups, heads, False, maps=2)
        grad_queries, grad_kv = torch.empty_like(queries), keys.new_empty(2, *keys.shape)
        for weights, k, v, grad_k, grad_v, ask, grad_ask, answer in zip(
            kept,
            *(_by_group(x, groups, heads, False) for x in (keys, values, *grad_kv)),
            *(
                _by_group(x, groups, heads, tail)
                for x in (queries, grad_queries, _rows(grad, asked.by_heads))
            ),
            strict=True,
        ):
            logits = torch._softmax_backward_data(torch.bmm(answer, v.mT), weights, 2, q.dtype)
            torch.bmm(logits, k, out=grad_ask)
            torch.bmm(logits.mT, ask, out=grad_k)
            torch.bmm(weights.mT, answer, out=grad_v)
        grad_scaled = _rows(grad_queries, asked.by_tokens).view(q.shape)
        grad_scale = None
        if ctx.needs_input_grad[2]:
            over = (1, 2) if scale.shape[1] == 1 else (2,)
            grad_scale = (grad_scaled * q).sum(dim=over).view(scale.shape)
        grad_both = _rows(grad_kv, seen.by_tokens).view(ctx.shape)
        return grad_scaled.mul_(scale[:, :, None]), grad_both, grad_scale, None, None


class Order(NamedTuple):
    """Two orders of the same rows of K numbers, each as the places of its rows in the
    other one.
    """

    by_heads: Tensor  # group by group (B, H, A or T): what a product needs stands together
    by_tokens: Tensor  # (M or N, H)


@lru_cache(maxsize=8)
def head_order(groups: tuple[Group, ...], heads: int, tail: bool, maps: int = 1) -> Order:
    """For (M or N, H, K); with several maps for (N, maps, H, K), which by heads is (maps, groups,
    K).
    """
    rows = []
    for group, asked, seen in spans(groups, tail):
        span = asked if tail else seen
        tokens = np.arange(span.start, span.stop).reshape(group.count, 1, -1)
        rows.append((tokens * (maps * heads) + np.arange(heads)[:, None]).ravel())
    one = np.concatenate(rows)
    by_heads = np.concatenate([one + heads * number for number in range(maps)])
    by_tokens = np.empty_like(by_heads)
    by_tokens[by_heads] = np.arange(len(by_heads))
    return Order(torch.from_numpy(by_heads), torch.from_numpy(by_tokens))


def _rows(x: Tensor, places: Tensor) -> Tensor:
    """(rows, K) of a tensor whose last dimension is K. Far faster than x[places]."""
    return x.reshape(-1, x.shape[-1]).index_select(0, places)


def _by_group(x: Tensor, groups: Sequence[Group], heads: int, tail: bool) -> list[Tensor]:
    """Each group's part of rows by heads: (B * H, A or T, K)."""
    counts = [group.count * heads for group in groups]
    sizes = [
        count * (group.tail if tail else group.length)
        for count, group in zip(counts, groups, strict=True)
    ]
    return [
        part.view(count, -1, x.shape[1])
        for count, part in zip(counts, x.split(sizes), strict=True)
    ]


def spans(groups: Sequence[Group], tail: bool) -> Iterator[tuple[Group, slice, slice]]:
    """Each group with the places of its queries and of its keys among the flat ones."""
    asked = seen = 0
    for group in groups:
        queries = group.count * (group.tail if tail else group.length)
        keys = group.count * group.length
        yield group, slice(asked, asked + queries), slice(seen, seen + keys)
        asked, seen = asked + queries, seen + keys


@lru_cache(maxsize=512)
def hidden_keys(queries: int, keys: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """(queries, keys) 0 where one of the last positions may see a key, -inf where not."""
    hidden = ~visible(queries, keys, device)
    return torch.zeros(queries, keys, dtype=dtype, device=device).masked_fill(
        hidden, float("-inf")
    )


def visible(queries: int, keys: int, device: torch.device) -> Tensor:
    """(queries, keys) which keys each of the last positions may see."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)
