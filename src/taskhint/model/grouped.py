"""Attention inside groups of equally long examples, forward and backward in one step over flat tensors.

Most examples are tiny, so what costs is not arithmetic but the number of tensors that are made, joined and filled with
zeros on the way. Here each group is read from the flat tensors and written back into them, and nothing is joined.

Shapes: N tokens, M queries (N, or the tail positions only), H heads, K head width; in a group B examples, T tokens, A
queries of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from taskhint.data.batch import Group

LONGEST = 128  # attention weights are kept for the way back, (B, H, A, T) of them: only for short examples


class GroupedAttention(torch.autograd.Function):
    """q (M, H, K), kv (N, 2, H, K), scale (M,) -> (M, H, K)."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, kv: Tensor, scale: Tensor, groups: Sequence[Group], tail: bool) -> Tensor:
        heads, width = q.shape[1:]
        out = torch.empty_like(q)
        kept: list[Tensor] = []
        for group, asked, seen in spans(groups, tail):
            scaled = q[asked] * scale[asked, None, None]
            queries = (
                scaled.view(group.count, -1, heads, width)
                .transpose(1, 2)
                .reshape(-1, len(scaled) // group.count, width)
            )
            keys, values = (
                kv[seen]
                .view(group.count, -1, 2, heads, width)
                .permute(2, 0, 3, 1, 4)
                .reshape(2, -1, group.length, width)
            )
            hidden = hidden_keys(queries.shape[1], group.length, q.dtype)
            weights = torch.baddbmm(hidden, queries, keys.mT).softmax(dim=2)
            found = torch.bmm(weights, values).view(group.count, heads, -1, width)
            out[asked].view(group.count, -1, heads, width).copy_(found.transpose(1, 2))
            kept += [queries, keys, values, weights]
        ctx.save_for_backward(q, scale, *kept)
        ctx.groups, ctx.tail, ctx.shape = groups, tail, kv.shape
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, scale, *kept = ctx.saved_tensors
        heads, width = q.shape[1:]
        grad_scaled, grad_kv = torch.empty_like(q), grad.new_empty(ctx.shape)
        for number, (group, asked, seen) in enumerate(spans(ctx.groups, ctx.tail)):
            queries, keys, values, weights = kept[4 * number : 4 * number + 4]
            found = grad[asked].view(group.count, -1, heads, width).transpose(1, 2).reshape(queries.shape)
            logits = torch._softmax_backward_data(torch.bmm(found, values.mT), weights, 2, q.dtype)
            both = torch.stack([torch.bmm(logits.mT, queries), torch.bmm(weights.mT, found)])
            both = both.view(2, group.count, heads, group.length, width)
            grad_kv[seen].view(group.count, -1, 2, heads, width).copy_(both.permute(1, 3, 0, 2, 4))
            asking = torch.bmm(logits, keys).view(group.count, heads, -1, width)
            grad_scaled[asked].view(group.count, -1, heads, width).copy_(asking.transpose(1, 2))
        grad_scale = (grad_scaled * q).sum(dim=(1, 2)) if ctx.needs_input_grad[2] else None
        return grad_scaled.mul_(scale[:, None, None]), grad_kv, grad_scale, None, None


def spans(groups: Sequence[Group], tail: bool) -> Iterator[tuple[Group, slice, slice]]:
    """Each group with the places of its queries and of its keys among the flat ones."""
    asked = seen = 0
    for group in groups:
        queries = group.count * (group.tail if tail else group.length)
        keys = group.count * group.length
        yield group, slice(asked, asked + queries), slice(seen, seen + keys)
        asked, seen = asked + queries, seen + keys


@lru_cache(maxsize=512)
def hidden_keys(queries: int, keys: int, dtype: torch.dtype) -> Tensor:
    """(queries, keys) 0 where one of the last positions may see a key, -inf where not."""
    return torch.zeros(queries, keys, dtype=dtype).masked_fill(~visible(queries, keys), float("-inf"))


def visible(queries: int, keys: int) -> Tensor:
    """(queries, keys) which keys each of the last positions may see."""
    return torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
