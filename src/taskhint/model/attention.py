"""Causal attention over flat tokens.

Shapes: N tokens, M queries (N, or the tail positions only), D width, H heads, K head width; B examples of T tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from taskhint.data.batch import Group
from taskhint.model.config import ModelConfig
from taskhint.model.places import Places
from taskhint.model.temperature import make_temperature

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(M, H, K) scaled queries, (N, H, K) keys and values -> (M, H, K)."""


class Attention(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads, self.head_width = config.heads, config.each_head
        inner = self.heads * self.head_width
        # Query, key and value maps stand on top of each other: (3 * H * K, D).
        self.qkv = nn.Parameter(torch.empty(3 * inner, config.width))
        self.out = nn.Linear(inner, config.width, bias=False)
        self.temperature = make_temperature(config)

    def forward(self, x: Tensor, places: Places, attend: Attend, tail: Tensor | None) -> Tensor:
        """(N, D) -> (M, D): what each query position gathers. With `tail`, only those positions ask."""
        inner = self.heads * self.head_width
        if tail is None:
            q, k, v = functional.linear(x, self.qkv).split(inner, dim=1)
        else:
            w_query, w_rest = self.qkv.split([inner, 2 * inner])
            q = functional.linear(x[tail], w_query)
            k, v = functional.linear(x, w_rest).split(inner, dim=1)
            places = places.select(tail)
        scale = self.temperature(places)
        q = q / math.sqrt(self.head_width) if scale is None else q * (scale / math.sqrt(self.head_width))[:, None]
        shape = (-1, self.heads, self.head_width)
        return self.out(attend(q.view(shape), k.view(shape), v.view(shape)).flatten(1))


def grouped_attend(groups: Sequence[Group], *, tail: bool) -> Attend:
    """Each example attends to itself alone, causally."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        sizes = [g.count * g.length for g in groups]
        asked = [g.count * (g.tail if tail else g.length) for g in groups]
        parts = zip(groups, q.split(asked), k.split(sizes), v.split(sizes), strict=True)
        return torch.cat([_attend_in(group, *part) for group, *part in parts])

    return attend


def _attend_in(group: Group, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q, k, v = (x.unflatten(0, (group.count, -1)).transpose(1, 2) for x in (q, k, v))
    return causal_attention(q, k, v).transpose(1, 2).flatten(0, 1)


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """(B, H, M, K) queries, (B, H, T, K) keys and values; the last query sees all keys, the one before one less."""
    if q.shape[2] == 1:
        return functional.scaled_dot_product_attention(q, k, v, scale=1.0)
    if q.shape[2] == k.shape[2]:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=visible(q.shape[2], k.shape[2]), scale=1.0)


def visible(queries: int, keys: int) -> Tensor:
    """(queries, keys) which keys each of the last positions may see."""
    return torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
