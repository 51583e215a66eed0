"""Causal attention over flat tokens.

Shapes: N tokens, M queries (N, or the tail positions only), D width, H heads, K head width; B examples of T tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from taskhint.data.batch import Group
from taskhint.model.attention.packed import LONGEST, GroupedAttention, spans, visible
from taskhint.model.attention.symbol_counts import attend_by_counts
from taskhint.model.config import ModelConfig
from taskhint.model.places import Places
from taskhint.model.positions import Mirror
from taskhint.model.temperature import make_temperature

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(M, H, K) queries, (N, 2, H, K) keys and values, (M,) the factor on each query's logits -> (M, H, K)."""


class Symbols(NamedTuple):
    """A stream that holds nothing but symbols: x[i] = table[tokens[i]]."""

    table: Tensor  # (V, D)
    tokens: Tensor  # (N,)
    groups: tuple[Group, ...]


class Attention(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads, self.head_width = config.heads, config.each_head
        inner = self.heads * self.head_width
        # Query, key and value maps stand on top of each other: (3 * H * K, D).
        self.qkv = nn.Parameter(torch.empty(3 * inner, config.width))
        self.out = nn.Linear(inner, config.width, bias=False)
        self.temperature = make_temperature(config)
        self.unit_keys = config.unit_keys
        self.mirror = Mirror(config) if config.positions == "mirror" else None

    def forward(
        self, x: Tensor, places: Places, attend: Attend, tail: Tensor | None = None, symbols: Symbols | None = None
    ) -> Tensor:
        """(N, D) -> (M, D): what each query position gathers. With `tail`, only those positions ask.

        With `symbols`, x is not one row per token but their table, (V, D): the maps are applied to the few symbols, and
        each token takes its symbol's row. It is the same result for far fewer products.
        """
        inner, shape = self.heads * self.head_width, (self.heads, self.head_width)
        w_query, w_rest = self.qkv.split([inner, 2 * inner])
        asking = places if tail is None else places.select(tail)
        scale = self.temperature(asking) / math.sqrt(self.head_width)
        kv = functional.linear(x, w_rest)
        q = functional.linear(x if tail is None or symbols is not None else x.index_select(0, tail), w_query)
        if self.unit_keys:
            keys, values = kv.split([inner, inner], dim=1)
            q, kv = self._unit(q), torch.cat([self._unit(keys), values], dim=1)
        if symbols is not None:
            _, tokens, groups = symbols
            found = attend_by_counts(
                q.view(-1, *shape), kv.view(-1, 2, *shape), scale, tokens, groups, tail is not None
            )
            if found is not None:
                return self.out(found.flatten(1))
            kv = functional.embedding(tokens, kv)
            q = functional.embedding(tokens if tail is None else tokens[tail], q)
        q, kv = q.view(-1, *shape), kv.view(-1, 2, *shape)
        if self.mirror is not None:
            keys, values = kv.unbind(1)
            q = self.mirror.queries(q, asking, scale)
            kv = torch.stack([self.mirror.keys(keys, places), values], dim=1)
        return self.out(attend(q, kv, scale).flatten(1))

    def _unit(self, x: Tensor) -> Tensor:
        """(N, H * K) with every head's part brought to size √K."""
        return functional.rms_norm(x.unflatten(1, (self.heads, -1)), (self.head_width,)).flatten(1)


def grouped_attend(groups: tuple[Group, ...], *, tail: bool) -> Attend:
    """Each example attends to itself alone, causally: in the way that suits the device and the lengths best."""
    short = torch.is_grad_enabled() and max(group.length for group in groups) <= LONGEST

    def attend(q: Tensor, kv: Tensor, scale: Tensor) -> Tensor:
        if q.is_cuda:
            from taskhint.model.attention.varlen import varlen_attend

            return varlen_attend(q, kv, scale, groups, tail)
        if short:
            return GroupedAttention.apply(q, kv, scale, groups, tail)  # type: ignore[no-untyped-call]
        return plain_grouped_attend(groups, tail=tail)(q, kv, scale)

    return attend


def plain_grouped_attend(groups: Sequence[Group], *, tail: bool) -> Attend:
    """The same with torch's own attention, which never holds all weights at once: for long examples."""

    def attend(q: Tensor, kv: Tensor, scale: Tensor) -> Tensor:
        sizes = [g.count * g.length for g in groups]
        asked = [span.stop - span.start for _, span, _ in spans(groups, tail)]
        parts = zip(groups, (q * scale[:, None, None]).split(asked), kv.split(sizes), strict=True)
        return torch.cat([rectangular_attention(g.count, scaled, both) for g, scaled, both in parts])

    return attend


def rectangular_attention(rows: int, scaled: Tensor, kv: Tensor) -> Tensor:
    """(rows * A, H, K) scaled queries, (rows * T, 2, H, K) keys and values of equally long examples."""
    q, k, v = (x.unflatten(0, (rows, -1)).transpose(1, 2) for x in (scaled, *kv.unbind(1)))
    return causal_attention(q, k, v).transpose(1, 2).flatten(0, 1)


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """(B, H, M, K) queries, (B, H, T, K) keys and values; the last query sees all keys, the one before one less."""
    if q.shape[2] == 1:
        return functional.scaled_dot_product_attention(q, k, v, scale=1.0)
    if q.shape[2] == k.shape[2]:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=visible(q.shape[2], k.shape[2]), scale=1.0)
