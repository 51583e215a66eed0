"""A vector for each place, added to the token's own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from taskhint.model.positions import scheme
from taskhint.model.positions.scheme import PositionHooks, Positions
from taskhint.model.weights import Weight
from taskhint.system.errors import UserError
from taskhint.system.settings import setting

if TYPE_CHECKING:
    from torch import Tensor

    from taskhint.model.config import ModelConfig
    from taskhint.model.places import Places

LARGEST_TABLE = 1 << 24
TABLE_SIZE = 0.2  # standard deviation at the start, as that of the embedding


@dataclass(frozen=True)
class Learned(Positions):
    """A learned vector for each of the first `max_positions` places."""

    kind: ClassVar[str] = "learned"

    max_positions: int = setting(512, at_least=1, at_most=LARGEST_TABLE)

    def weights(self, model: ModelConfig) -> dict[str, Weight]:
        return {"table.weight": Weight((self.max_positions, model.width), std=TABLE_SIZE)}

    def bind(self, model: ModelConfig, weights: Mapping[str, Tensor]) -> PositionHooks:  # noqa: ARG002
        return TableHooks(weights["table.weight"])


class TableHooks(PositionHooks):
    def __init__(self, table: Tensor) -> None:
        self.table = table

    def add(self, x: Tensor, places: Places) -> Tensor:
        from torch.nn import functional

        longest = scheme.largest(places.ids) + 1
        if longest > len(self.table):
            raise UserError(
                f"place {longest} of a sequence is beyond the {len(self.table)} learned "
                "positions of this model"
            )
        return x + functional.embedding(places.ids, self.table)


@dataclass(frozen=True)
class Sinusoidal(Positions):
    """Sines and cosines of the place, at rates from 1 down to 1/10,000."""

    kind: ClassVar[str] = "sinusoidal"

    def check(self, model: ModelConfig) -> None:
        if model.width % 2:
            raise UserError(
                f"model.width={model.width} is odd; sinusoidal positions need an even width"
            )

    def add(self, x: Tensor, places: Places) -> Tensor:
        import torch

        width = x.shape[1]
        places_of_rates = torch.arange(0, width, 2, dtype=x.dtype, device=x.device)
        angles = places.ids[:, None] * torch.exp(places_of_rates * (-math.log(10_000.0) / width))
        return x + torch.cat([angles.sin(), angles.cos()], dim=1)
