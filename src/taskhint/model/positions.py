"""What a token knows of its place: nothing (the default), a learned vector, or sines."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from taskhint.errors import UserError
from taskhint.model.config import ModelConfig
from taskhint.model.places import Places


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


def make_positions(config: ModelConfig) -> nn.Module:
    if config.positions == "learned":
        return LearnedPositions(config)
    return SinusoidalPositions() if config.positions == "sinusoidal" else NoPositions()
