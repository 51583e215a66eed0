"""How attention logits scale with length."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from taskhint.model.config import ModelConfig
from taskhint.model.places import Places


class ConstantTemperature(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one: Tensor
        self.register_buffer("one", torch.ones(()), persistent=False)  # moves to other number types with the model

    def forward(self, places: Places) -> Tensor:
        """(N,) a factor per query."""
        return self.one.expand(len(places.position))


class LogTemperature(nn.Module):
    """β·ln n. A query's logits are all scaled alike, so the factor can be put on the query itself."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.counted = config.temperature
        self.beta = nn.Parameter(torch.tensor(config.initial_beta))

    def forward(self, places: Places) -> Tensor:
        """(N,) a factor per query."""
        if self.counted == "log-visible":
            n = places.position + 1
        elif self.counted == "log-input":
            n = places.inputs
        else:
            n = places.sequence
        return self.beta * n.to(self.beta.dtype).log()


def make_temperature(config: ModelConfig) -> nn.Module:
    return ConstantTemperature() if config.temperature == "constant" else LogTemperature(config)
