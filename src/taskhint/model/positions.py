"""What a token knows of its place: nothing (the default), a learned vector, sines, or its distance from ⊥.

Shapes: N tokens, H heads, K head width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from taskhint.model.config import ModelConfig
from taskhint.model.places import Places
from taskhint.system.errors import UserError


class LearnedPositions(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.table = nn.Embedding(config.max_positions, config.width)

    def forward(self, x: Tensor, places: Places) -> Tensor:
        longest = int(places.position.max()) + 1
        if longest > self.table.num_embeddings:
            raise UserError(
                f"a sequence of {longest} tokens is longer than the {self.table.num_embeddings} learned positions "
                "of this model"
            )
        return x + self.table(places.position)


class SinusoidalPositions(nn.Module):
    def forward(self, x: Tensor, places: Places) -> Tensor:
        width = x.shape[1]
        rates = torch.exp(torch.arange(0, width, 2, dtype=x.dtype) * (-math.log(10_000.0) / width))
        angles = places.position[:, None] * rates
        return x + torch.cat([angles.sin(), angles.cos()], dim=1)


class NoPositions(nn.Module):
    def forward(self, x: Tensor, places: Places) -> Tensor:  # noqa: ARG002
        return x


SLOWEST_TURN = 1e-2  # radians for a step away from ⊥; the fastest pair of coordinates turns by 1
SMALLEST_SCALE = 1e-3  # the first token of all has none: ln 1 = 0
NARROWEST, WIDEST = 0.5, 1.5  # widths of the heads' windows, in steps: all that is in sight, short inputs have too


class Mirror(nn.Module):
    """Places are distances from ⊥, on either side: the k-th symbol before it and the k-th of the answer share one.

    A query stands where the token that it predicts will stand. Two things depend on places, both on the difference of
    two of them alone, so that they mean the same at every length: all pairs of coordinates but the last are turned by
    an angle that grows with the place; and the last pair holds what makes logits fall by (difference / width)² / 2,
    with a width for each head, from narrow to wide: a difference that was never trained is out of sight.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.pairs = config.each_head // 2 - 1
        ratios = [head / max(1, config.heads - 1) for head in range(config.heads)]
        self.widths = [NARROWEST * (WIDEST / NARROWEST) ** ratio for ratio in ratios]

    def queries(self, x: Tensor, places: Places, scale: Tensor) -> Tensor:
        """(N, H, K) -> (N, H, K), such that a later factor `scale` (N,) leaves the window as it is."""
        place = (places.position + 1 - places.inputs).abs().to(x.dtype)
        steepness = x.new_tensor([0.5 / width**2 for width in self.widths])
        window = torch.stack([2.0 * place[:, None] * steepness, -steepness.expand(len(x), -1)], dim=2)
        return self._turned(x, place, window / scale.clamp(min=SMALLEST_SCALE)[:, None, None])

    def keys(self, x: Tensor, places: Places) -> Tensor:
        """(N, H, K) -> (N, H, K)."""
        place = (places.position - places.inputs).abs().to(x.dtype)
        window = torch.stack([place, place**2], dim=1)[:, None, :].expand(-1, x.shape[1], -1)
        return self._turned(x, place, window)

    def _turned(self, x: Tensor, place: Tensor, window: Tensor) -> Tensor:
        exponents = torch.arange(self.pairs, dtype=x.dtype, device=x.device) / max(1, self.pairs - 1)
        angles = (place[:, None] * SLOWEST_TURN**exponents)[:, None, :]
        sine, cosine = angles.sin(), angles.cos()
        first, second, _ = x.split([self.pairs, self.pairs, 2], dim=2)
        return torch.cat([first * cosine - second * sine, first * sine + second * cosine, window], dim=2)


def make_positions(config: ModelConfig) -> nn.Module:
    """What is added to the tokens' vectors."""
    if config.positions == "learned":
        return LearnedPositions(config)
    return SinusoidalPositions() if config.positions == "sinusoidal" else NoPositions()
