"""How weights begin: every one is drawn from the recipe's seed, in the order of the
forward pass.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from taskhint.model.weights import Weight


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
