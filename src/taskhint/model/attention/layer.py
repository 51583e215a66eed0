"""One block's attention: maps to queries, keys and values, what positions and temperature do to
them, and back.

Shapes: N tokens, M queries (N, or the tail positions only), V symbols, D width, H heads, K head
width.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from taskhint.data.batch import Group
from taskhint.model.attention.paths import Attend, Variant
from taskhint.model.attention.symbol_counts import attend_by_counts
from taskhint.model.config import ModelConfig
from taskhint.model.initial import Draw, LearnedWeights
from taskhint.model.places import Places
from taskhint.model.positions import PositionHooks
from taskhint.model.trace import Keep, keep_nothing
from taskhint.system.devices import exact_products


class Symbols(NamedTuple):
    """A stream that holds nothing but symbols: x[i] = table[tokens[i]]."""

    table: Tensor  # (V, D)
    tokens: Tensor  # (N,)
    groups: tuple[Group, ...]


class Attention(nn.Module):
    def __init__(self, config: ModelConfig, shared: LearnedWeights) -> None:
        """`shared` are the position scheme's weights that all blocks have in common."""
        super().__init__()
        self.config = config
        self._shared = (shared,)  # in a tuple, so that it stays the decoder's part
        self.shape = (config.heads, config.each_head)
        self.inner = config.heads * config.each_head
        # Query, key and value maps stand on top of each other: (3 * H * K, D).
        self.qkv = nn.Parameter(torch.empty(3 * self.inner, config.width))
        self.out = nn.Linear(self.inner, config.width, bias=False)
        self.temperature = LearnedWeights(config.temperature.weights(config))
        self.positions = LearnedWeights(config.positions.block_weights(config))

    def initialise(self, draw: Draw, residual: float) -> None:
        draw.matrix(self.qkv)
        draw.matrix(self.out.weight, residual)
        self.temperature.initialise(draw)
        self.positions.initialise(draw)

    def hooks(self) -> PositionHooks:
        (shared,) = self._shared
        return self.config.positions.bind(self.config, shared.values() | self.positions.values())

    def forward(
        self,
        x: Tensor,
        places: Places,
        attend: Attend,
        tail: Tensor | None = None,
        symbols: Symbols | None = None,
        keep: Keep = keep_nothing,
    ) -> Tensor:
        """(N, D) -> (M, D): what each query position gathers. With `tail`, only those positions
        ask.

        With `symbols`, x is not one row per token but their table, (V, D): the maps are applied to
        the few symbols, and each token takes its symbol's row. It is the same result for far fewer
        products.
        """
        w_query, w_rest = self.qkv.split([self.inner, 2 * self.inner])
        asking = places if tail is None else places.select(tail)
        with exact_products(x.device):
            scale = keep("attention.scale", self._scale(x, asking, tail))
        kv = functional.linear(x, w_rest)
        q = functional.linear(
            x if tail is None or symbols is not None else x.index_select(0, tail), w_query
        )
        with exact_products(x.device):
            q, kv = q.to(x.dtype), kv.to(x.dtype)
            found = self._found(q, kv, scale, asking, places, attend, tail, symbols)
        return self.out(found.flatten(1))

    def _found(
        self,
        q: Tensor,
        kv: Tensor,
        scale: Tensor,
        asking: Places,
        places: Places,
        attend: Attend,
        tail: Tensor | None,
        symbols: Symbols | None,
    ) -> Tensor:
        """(M, H, K) what each query position finds: of the tokens' or the symbols' maps."""
        config = self.config
        if config.qk_norm:
            keys, values = kv.split([self.inner, self.inner], dim=1)
            q, kv = self._unit(q), torch.cat([self._unit(keys), values], dim=1)
        hooks = self.hooks()
        variant = Variant(
            hooks.bias if hooks.overrides("bias") else None, config.normaliser, asking, places
        )
        if symbols is not None:
            _, tokens, groups = symbols
            if variant.is_plain:
                table = q.view(-1, *self.shape), kv.view(-1, 2, *self.shape)
                found = attend_by_counts(*table, scale, tokens, groups, tail is not None)
                if found is not None:
                    return found
            kv = functional.embedding(tokens, kv)
            q = functional.embedding(tokens if tail is None else tokens[tail], q)
        q, kv = self._turned(
            hooks, q.view(-1, *self.shape), kv.view(-1, 2, *self.shape), variant, scale
        )
        return attend(q, kv, scale, variant)

    def _scale(self, x: Tensor, asking: Places, tail: Tensor | None) -> Tensor:
        """(M, 1) or (M, H) what logits are multiplied with."""
        config = self.config
        if config.temperature.reads_stream:
            asking = asking.with_stream(x if tail is None else x.index_select(0, tail))
        factor = config.temperature.bind(config, self.temperature.values()).factor(asking)
        if factor is None:
            factor = x.new_ones(()).expand(len(asking.index))
        scale = factor / math.sqrt(config.each_head)
        return scale[:, None] if scale.dim() == 1 else scale

    def _turned(
        self, hooks: PositionHooks, q: Tensor, kv: Tensor, variant: Variant, scale: Tensor
    ) -> tuple[Tensor, Tensor]:
        if not hooks.overrides("turn", "turn_queries", "turn_keys"):
            return q, kv
        keys, values = kv.unbind(1)
        q = hooks.turn_queries(q, variant.asking, scale)
        return q, torch.stack([hooks.turn_keys(keys, variant.seen), values], dim=1)

    def _unit(self, x: Tensor) -> Tensor:
        """(N, H * K) with every head's part brought to size √K."""
        heads, each = self.shape
        return functional.rms_norm(x.unflatten(1, (heads, -1)), (each,)).flatten(1)
