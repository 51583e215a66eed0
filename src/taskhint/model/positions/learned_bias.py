"""Logits change with the distance in a way that is learned for each head.

Shapes: H heads, F hidden numbers; B examples, A queries and T keys of each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from taskhint.model.positions.scheme import PositionHooks, Positions
from taskhint.model.weights import Weight
from taskhint.system.errors import UserError
from taskhint.system.settings import setting

if TYPE_CHECKING:
    from torch import Tensor

    from taskhint.model.config import ModelConfig

Weights = Mapping[str, "Tensor"]
HIDDEN = 32  # of FIRE's small network, as published


@dataclass(frozen=True)
class T5Buckets(Positions):
    """A learned number for each bucket of distances and each head, shared by all blocks (Raffel et
    al. 2020).

    Half of the buckets hold one distance each, the others ever more up to `max_distance`; the last
    one holds all that is beyond.
    """

    kind: ClassVar[str] = "t5"

    buckets: int = 32
    max_distance: int = 128

    def __post_init__(self) -> None:
        if not 2 <= self.buckets < 2 * self.max_distance <= 1 << 30:
            raise UserError(
                f"model.positions: {self.buckets} buckets up to a distance of {self.max_distance} "
                "is not possible; at least 2 buckets, and half of them less than max_distance"
            )

    def weights(self, model: ModelConfig) -> dict[str, Weight]:
        return {"bias.weight": Weight((self.buckets, model.heads), std=model.width**-0.5)}

    def bind(self, model: ModelConfig, weights: Weights) -> PositionHooks:  # noqa: ARG002
        return BucketHooks(self, weights["bias.weight"])

    def bucket(self, distance: Tensor) -> Tensor:
        """Which bucket each distance of 0 or more is in."""
        single = self.buckets // 2
        ratio = (distance.clamp(min=single).double() / single).log() / math.log(
            self.max_distance / single
        )
        wide = single + (ratio * (self.buckets - single)).long()
        return distance.where(distance < single, wide.clamp(max=self.buckets - 1))


class BucketHooks(PositionHooks):
    def __init__(self, settings: T5Buckets, table: Tensor) -> None:
        self.settings, self.table = settings, table

    def bias(self, query: Tensor, key: Tensor) -> Tensor:
        buckets = self.settings.bucket((query - key).clamp(min=0))[:, 0]
        return self.table[buckets].movedim(3, 1)


@dataclass(frozen=True)
class KerpleLog(Positions):
    """KERPLE (Chi et al. 2022), logarithmic: -r1 · ln(1 + r2 · distance), r1 and r2 > 0 of each
    head and block.
    """

    kind: ClassVar[str] = "kerple-log"

    def block_weights(self, model: ModelConfig) -> dict[str, Weight]:
        each = Weight((model.heads,), std=0.5)
        return {"log_r1": each, "log_r2": each}

    def bind(self, model: ModelConfig, weights: Weights) -> PositionHooks:  # noqa: ARG002
        return KerpleLogHooks(weights["log_r1"].exp(), weights["log_r2"].exp())


@dataclass(frozen=True)
class KerplePower(Positions):
    """KERPLE (Chi et al. 2022), power: -r1 · distance^r2, r1 > 0 and 0 < r2 < 2 of each head and
    block.
    """

    kind: ClassVar[str] = "kerple-power"

    def block_weights(self, model: ModelConfig) -> dict[str, Weight]:
        each = Weight((model.heads,), std=0.5)
        return {"log_r1": each, "logit_r2": each}

    def bind(self, model: ModelConfig, weights: Weights) -> PositionHooks:  # noqa: ARG002
        return KerplePowerHooks(weights["log_r1"].exp(), 2.0 * weights["logit_r2"].sigmoid())


class KerpleLogHooks(PositionHooks):
    def __init__(self, r1: Tensor, r2: Tensor) -> None:
        self.r1, self.r2 = (r.view(1, -1, 1, 1) for r in (r1, r2))

    def bias(self, query: Tensor, key: Tensor) -> Tensor:
        return -self.r1 * (self.r2 * (query - key).abs()).log1p()


class KerplePowerHooks(KerpleLogHooks):
    def bias(self, query: Tensor, key: Tensor) -> Tensor:
        return -self.r1 * (query - key).abs() ** self.r2


@dataclass(frozen=True)
class Fire(Positions):
    """FIRE (Li et al. 2024): a small network of ψ(i - j) / ψ(max(i, L)), with ψ(x) = ln(cx + 1).

    The network, c and the threshold L are learned in each block; L begins at `threshold`.
    """

    kind: ClassVar[str] = "fire"

    threshold: float = setting(512.0, above=0)

    def block_weights(self, model: ModelConfig) -> dict[str, Weight]:
        return {
            "c": Weight(mean=0.1),
            "threshold": Weight(mean=1.0),  # times the setting of that name
            "up.weight": Weight((HIDDEN,), std=1.0),
            "up.bias": Weight((HIDDEN,)),
            "down.weight": Weight((model.heads, HIDDEN), std=HIDDEN**-0.5),
            "down.bias": Weight((model.heads,)),
        }

    def bind(self, model: ModelConfig, weights: Weights) -> PositionHooks:  # noqa: ARG002
        return FireHooks(self.threshold, weights)


class FireHooks(PositionHooks):
    def __init__(self, threshold: float, weights: Weights) -> None:
        self.threshold, self.weights = threshold, weights

    def bias(self, query: Tensor, key: Tensor) -> Tensor:
        from torch.nn import functional

        w = self.weights
        slope, threshold = w["c"].abs(), (self.threshold * w["threshold"]).abs()
        distance = (query - key).clamp(min=0)[:, 0]  # (B, A, T)
        whole = query[:, 0].to(slope.dtype).maximum(threshold)
        ratio = (slope * distance).log1p() / (slope * whole).log1p()
        hidden = functional.relu(ratio[..., None] * w["up.weight"] + w["up.bias"])
        return functional.linear(hidden, w["down.weight"], w["down.bias"]).movedim(3, 1)
