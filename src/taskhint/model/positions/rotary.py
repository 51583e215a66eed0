"""Queries and keys turned by angles that grow with the place.

Shapes: N tokens, H heads, K head width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from taskhint.model.positions.scheme import Positions
from taskhint.system.errors import UserError
from taskhint.system.settings import setting

if TYPE_CHECKING:
    from torch import Tensor

    from taskhint.model.config import ModelConfig
    from taskhint.model.places import Places


@dataclass(frozen=True)
class Rope(Positions):
    """Rotary positions (Su et al. 2021): pair k of a head's K coordinates turns by
    place · base^(-2k/K).

    A pair is coordinates k and k + K/2, as in GPT-NeoX. A logit depends on the difference of two
    places alone.
    """

    kind: ClassVar[str] = "rope"

    base: float = setting(10_000.0, above=1)

    def check(self, model: ModelConfig) -> None:
        if model.each_head % 2:
            raise UserError(f"a head's width of {model.each_head} is odd; rope needs an even one")

    def turn(self, x: Tensor, places: Places) -> Tensor:
        import torch

        first, second = x.chunk(2, dim=2)
        pairs = first.shape[2]
        exponents = torch.arange(pairs, dtype=x.dtype, device=x.device) / pairs
        angles = (places.ids[:, None] * self.base**-exponents)[:, None, :]
        return torch.cat(turned(first, second, angles), dim=2)


def turned(first: Tensor, second: Tensor, angles: Tensor) -> tuple[Tensor, Tensor]:
    """Pairs of coordinates, turned."""
    sine, cosine = angles.sin(), angles.cos()
    return first * cosine - second * sine, first * sine + second * cosine
