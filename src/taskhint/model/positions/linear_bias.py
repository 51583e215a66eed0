"""Logits fall with the distance in a straight line, at a fixed slope for each head."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from taskhint.model.positions.scheme import PositionHooks, Positions
from taskhint.system.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor

    from taskhint.model.config import ModelConfig


@dataclass(frozen=True)
class Alibi(Positions):
    """ALiBi (Press et al. 2022): -slope · distance, slopes 2^(-8h/H) for heads h = 1..H.

    Where H is no power of two, as published: the slopes of the power below, then every other one
    of the power above.
    """

    kind: ClassVar[str] = "alibi"

    def bind(self, model: ModelConfig, weights: Mapping[str, Tensor]) -> PositionHooks:  # noqa: ARG002
        return SlopeHooks(alibi_slopes(model.heads))


@dataclass(frozen=True)
class Nape(Positions):
    """NAPE (Vasylenko et al. 2025): slopes 1, 1/2, 1/3, ... for the first half of the heads, no
    positions for the others.
    """

    kind: ClassVar[str] = "nape"

    def check(self, model: ModelConfig) -> None:
        if model.heads < 2:
            raise UserError(f"model.heads={model.heads} cannot be halved; nape needs at least 2")

    def bind(self, model: ModelConfig, weights: Mapping[str, Tensor]) -> PositionHooks:  # noqa: ARG002
        sloping = model.heads // 2
        return SlopeHooks(
            [1.0 / h for h in range(1, sloping + 1)] + [0.0] * (model.heads - sloping)
        )


def alibi_slopes(heads: int) -> list[float]:
    power = 1 << int(math.log2(heads))
    slopes = [2.0 ** (-8.0 * h / power) for h in range(1, power + 1)]
    return slopes + [2.0 ** (-4.0 * h / power) for h in range(1, 2 * (heads - power), 2)]


class SlopeHooks(PositionHooks):
    def __init__(self, slopes: Sequence[float]) -> None:
        self.slopes = slopes

    def bias(self, query: Tensor, key: Tensor) -> Tensor:
        import torch

        slopes = torch.tensor(self.slopes, device=query.device).view(1, -1, 1, 1)
        return -slopes * (query - key).abs()
