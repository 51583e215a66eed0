"""One block of the decoder: attention with its maps, what positions and temperature do to queries
and keys, the MLP; and how their weights begin, drawn from the recipe's seed in the order of the
forward pass.

Shapes: N tokens, M queries (N, or the tail positions only), V symbols, D width, H heads, K head
width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from taskhint.data.batch import Group
from taskhint.model.attention.paths import Attend, Variant
from taskhint.model.attention.symbol_counts import attend_by_counts
from taskhint.model.config import ModelConfig
from taskhint.model.places import Places
from taskhint.model.positions import PositionHooks
from taskhint.model.weights import Weight
from taskhint.system.devices import exact_products

Keep = Callable[[str, Tensor], Tensor]
"""A name and a value of all flat tokens -> the value with which the pass goes on."""


def keep_nothing(name: str, value: Tensor) -> Tensor:  # noqa: ARG001
    """Nobody asked for a trace."""
    return value


class Draw:
    """Draws weights from one seed."""

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def normal(self, value: Tensor, std: float, mean: float = 0.0) -> None:
        value.normal_(mean, std, generator=self._generator)

    def matrix(self, value: Tensor, factor: float = 1.0) -> None:
        """A map that keeps the size of what it maps."""
        self.normal(value, 1.0 / math.sqrt(value.shape[1]) * factor)

    def linear(self, layer: nn.Linear, factor: float = 1.0) -> None:
        self.matrix(layer.weight, factor)
        layer.bias.zero_()


class LearnedWeights(nn.Module):
    """Parameters by the names that a position scheme or temperature gave them; a dot in a name is
    a level.
    """

    def __init__(self, wanted: Mapping[str, Weight]) -> None:
        super().__init__()
        self._wanted = dict(wanted)
        for name, weight in wanted.items():
            *levels, last = name.split(".")
            module: nn.Module = self
            for level in levels:
                if level not in module._modules:
                    module.add_module(level, nn.Module())
                module = module.get_submodule(level)
            module.register_parameter(last, nn.Parameter(torch.full(weight.shape, weight.mean)))

    def values(self) -> dict[str, Tensor]:
        return {name: self.get_parameter(name) for name in self._wanted}

    def initialise(self, draw: Draw) -> None:
        for name, weight in self._wanted.items():
            if weight.std:
                draw.normal(self.get_parameter(name), weight.std, weight.mean)


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
        config.normaliser.check_installed()
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


class Mlp(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.up = nn.Linear(config.width, config.mlp_width)
        self.activation = nn.GELU() if config.activation == "gelu" else nn.ReLU()
        self.down = nn.Linear(config.mlp_width, config.width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(x)))


def norm_at(config: ModelConfig, where: str) -> nn.Module:
    return nn.LayerNorm(config.width) if config.norm == where else nn.Identity()


class Block(nn.Module):
    def __init__(self, config: ModelConfig, positions: LearnedWeights) -> None:
        super().__init__()
        self.before_attention = norm_at(config, "before")
        self.attention = Attention(config, positions)
        self.before_mlp = norm_at(config, "before") if config.mlp_width else None
        self.mlp = Mlp(config) if config.mlp_width else None
        self.after = norm_at(config, "after")

    def initialise(self, draw: Draw, residual: float) -> None:
        self.attention.initialise(draw, residual)
        if self.mlp is not None:
            draw.linear(self.mlp.up)
            draw.linear(self.mlp.down, residual)

    def forward(
        self,
        x: Tensor,
        places: Places,
        attend: Attend,
        tail: Tensor | None = None,
        symbols: Symbols | None = None,
        keep: Keep = keep_nothing,
    ) -> Tensor:
        """(N, D) -> (N, D), or (M, D) of the tail positions only. `symbols`: what x was taken
        from, if that is so.
        """
        read = self.before_attention(x if symbols is None else symbols.table)
        gathered = self.attention(read, places, attend, tail, symbols, keep)
        x = x if tail is None else x.index_select(0, tail)
        x = keep("after_attention", x + keep("attention.out", gathered))
        if self.mlp is not None and self.before_mlp is not None:
            x = x + keep("mlp.out", self.mlp(self.before_mlp(x)))
        return keep("after_mlp", self.after(x))
