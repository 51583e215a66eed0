"""How long the training inputs are."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from taskhint.system.errors import UserError
from taskhint.system.settings import Family, setting
from taskhint.tasks.random_bits import Ints, RandomBits

MAX_LENGTH = 1 << 20


@dataclass(frozen=True)
class Lengths(Family):
    """A distribution of input lengths. Derive from it, name a `kind`, and say what is drawn."""

    family: ClassVar[str] = "length distribution"
    unwritten: ClassVar[str] = "skewed"

    @abstractmethod
    def shares(self) -> dict[int, float]:
        """How likely each length is; they add up to 1."""

    def draw(self, bits: RandomBits) -> Ints:
        """(B,) a length per example. The same bits always give the same lengths."""
        shares = self.shares()
        lengths, ends = np.array(list(shares)), np.cumsum(list(shares.values()))
        return lengths[np.searchsorted(ends[:-1] / ends[-1], bits.uniform(1)[:, 0], side="right")]

    @property
    def max_length(self) -> int:
        """The longest input that training sees."""
        return max(self.shares())


def _check_range(shortest: int, longest: int) -> None:
    if not 1 <= shortest <= longest <= MAX_LENGTH:
        raise UserError(
            f"lengths need 1 <= shortest <= longest <= {MAX_LENGTH}, got {shortest} and {longest}"
        )


@dataclass(frozen=True)
class Skewed(Lengths):
    """Mostly short: `short_share` of the mass equally on shortest..short, the rest equally on
    short+1..longest.
    """

    kind: ClassVar[str] = "skewed"
    label: ClassVar[str] = "lengths"

    shortest: int
    short: int
    longest: int
    short_share: float = setting(0.8, at_least=0, at_most=1)

    def __post_init__(self) -> None:
        if not 1 <= self.shortest <= self.short <= self.longest <= MAX_LENGTH:
            raise UserError(
                f"lengths need 1 <= shortest <= short <= longest <= {MAX_LENGTH}, "
                f"got {self.shortest}, {self.short}, {self.longest}"
            )

    def shares(self) -> dict[int, float]:
        short, long = self.short - self.shortest + 1, self.longest - self.short
        mass = self.short_share if long else 1.0
        shares = dict.fromkeys(range(self.shortest, self.short + 1), mass / short)
        return shares | dict.fromkeys(
            range(self.short + 1, self.longest + 1), (1.0 - mass) / max(long, 1)
        )

    def draw(self, bits: RandomBits) -> Ints:
        is_short = bits.chance(self.short_share) | (self.short == self.longest)
        span = np.where(is_short, self.short - self.shortest + 1, self.longest - self.short)
        offset = bits.integers(span[:, None], 1)[:, 0]
        return np.where(is_short, self.shortest, self.short + 1) + offset

    @property
    def max_length(self) -> int:
        return self.longest


@dataclass(frozen=True)
class EvenLengths(Lengths):
    """Every length from shortest to longest equally likely."""

    kind: ClassVar[str] = "uniform"
    label: ClassVar[str] = "lengths"

    shortest: int = 2
    longest: int = 20

    def __post_init__(self) -> None:
        _check_range(self.shortest, self.longest)

    def shares(self) -> dict[int, float]:
        count = self.longest - self.shortest + 1
        return dict.fromkeys(range(self.shortest, self.longest + 1), 1.0 / count)

    def draw(self, bits: RandomBits) -> Ints:
        return self.shortest + bits.integers(self.longest - self.shortest + 1, 1)[:, 0]

    @property
    def max_length(self) -> int:
        return self.longest


@dataclass(frozen=True)
class Cut(Lengths):
    """Another distribution without its lengths above `longest`; of its shortest length if none is
    left.
    """

    kind: ClassVar[str] = "cut"
    label: ClassVar[str] = "lengths"

    of: Lengths
    longest: int

    def shares(self) -> dict[int, float]:
        whole = self.of.shares()
        kept = {n: share for n, share in whole.items() if n <= self.longest and share > 0.0}
        total = sum(kept.values())
        return {n: share / total for n, share in kept.items()} or {min(whole): 1.0}


@dataclass(frozen=True)
class Primed(Lengths):
    """Another distribution, but a share of the inputs has one other length.

    It has no kind, and stands in no recipe: a curriculum makes it, and says so in `beyond`.
    """

    label: ClassVar[str] = "lengths"

    of: Lengths
    length: int
    share: float = setting(0.01, at_least=0, at_most=1)

    def __post_init__(self) -> None:
        _check_range(1, self.length)

    def shares(self) -> dict[int, float]:
        shares = {n: (1.0 - self.share) * share for n, share in self.of.shares().items()}
        shares[self.length] = shares.get(self.length, 0.0) + self.share
        return shares
