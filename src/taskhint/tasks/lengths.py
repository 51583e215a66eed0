"""How long the training inputs are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taskhint.system.errors import UserError
from taskhint.tasks.random_bits import Ints, RandomBits

MAX_LENGTH = 1 << 20


@dataclass(frozen=True)
class Lengths:
    """Mostly short: `short_share` of the mass equally on shortest..short, the rest equally on short+1..longest."""

    shortest: int
    short: int
    longest: int
    short_share: float = 0.8

    def __post_init__(self) -> None:
        if not 1 <= self.shortest <= self.short <= self.longest <= MAX_LENGTH:
            raise UserError(
                f"lengths need 1 <= shortest <= short <= longest <= {MAX_LENGTH}, "
                f"got {self.shortest}, {self.short}, {self.longest}"
            )
        if not 0.0 <= self.short_share <= 1.0:
            raise UserError(f"lengths.short_share={self.short_share} is not in 0..1")

    def draw(self, bits: RandomBits) -> Ints:
        """(B,) a length per example."""
        is_short = bits.chance(self.short_share) | (self.short == self.longest)
        span = np.where(is_short, self.short - self.shortest + 1, self.longest - self.short)
        offset = bits.integers(span[:, None], 1)[:, 0]
        return np.where(is_short, self.shortest, self.short + 1) + offset
