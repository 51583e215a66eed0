"""Every interval of the package: 95%, of a share, of a mean over seeds, of a difference of two.

A share of sequences has Wilson's interval. It lies in 0..1 and has a width even where nothing or
everything is right.

A mean over k seeds has two sources of error: seeds differ, and each was asked only some sequences.
`OverSeeds.interval` knows both. It is Wilson's interval for

    N = min(k² / Σ 1/nᵢ,  z² · m(1-m) / (t² · s²/k))

sequences: the first term is how many there were (nᵢ of seed i; their sum, if all have as many),
the second how many would spread as the seeds' means do (m their mean, s² their variance, t
Student's factor for k-1 degrees of freedom, z the normal one). So in the middle of 0..1 it is
Student's interval over the seeds, at the ends it bends as Wilson's does, and it is never narrower
than Wilson's over all sequences. One seed alone has that one, which says nothing of other seeds.

A quantity in 0..most is taken as a share of `most`. No such quantity varies more from sequence to
sequence than one that is either 0 or `most`, so that its interval is on the safe side.

A difference has Welch's interval, with the variance of each mean at least what its sequences give.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from statistics import NormalDist, fmean, variance
from typing import Any

import numpy as np
import numpy.typing as npt

CONFIDENCE = 0.95
NODES = 80  # of the quadrature: more change nothing
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """Where the true value lies with 95% confidence, and what varies: `of` sequences, or seeds."""

    low: float
    high: float
    of: str = "sequences"

    def __iter__(self) -> Iterator[float]:
        return iter((self.low, self.high))

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __mul__(self, factor: float) -> Interval:
        return Interval(factor * self.low, factor * self.high, self.of)

    def text(self, digits: int = 1) -> str:
        return f"{self.low:.{digits}f}–{self.high:.{digits}f}"


@cache
def normal_factor() -> float:
    return NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


@cache
def t_factor(freedom: float) -> float:
    """Student's factor for so many degrees of freedom, at least 1.

    With t = √ν · tan(x) the probability of the middle is an integral of c · cos(x)^(ν-1), which
    is smooth up to the quantile. It falls with x, so Newton's steps from 0 never go too far.
    """
    ratio = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    at_zero = 2 * math.exp(ratio) / math.sqrt(math.pi)

    def density(x: Floats | float) -> Any:
        return at_zero * np.exp((freedom - 1) * np.log(np.cos(x)))

    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    angle, step = 0.0, 1.0
    while step > 1e-14 * angle:
        middle = angle / 2 * float(weights @ density(angle / 2 * (1 + nodes)))
        step = (CONFIDENCE - middle) / float(density(angle))
        angle += step
    return math.sqrt(freedom) * math.tan(angle)


def wilson(share: float, count: float, of: str = "sequences") -> Interval:
    """Of a share of `count` independent observations, which need not be a whole number."""
    z = normal_factor()
    centre = share + z * z / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    shrink = 1 + z * z / count
    low, high = (centre - half) / shrink, (centre + half) / shrink
    return Interval(low if share > 0.0 else 0.0, high if share < 1.0 else 1.0, of)


def student_half(rows: Floats) -> Any:
    """Half the width of Student's interval of the mean over the first axis; 0 of one row."""
    count = len(rows)
    if count < 2:
        return np.zeros(rows.shape[1:])
    return t_factor(count - 1) * rows.std(axis=0, ddof=1) / math.sqrt(count)


@dataclass(frozen=True)
class OverSeeds:
    """A quantity in 0..most: of every seed its mean over so many sequences."""

    means: tuple[float, ...]
    sequences: tuple[int, ...]
    most: float = 1.0
    seeds: int = field(init=False, compare=False)
    mean: float = field(init=False, compare=False)
    interval: Interval = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "seeds", len(self.means))
        object.__setattr__(self, "mean", sum(self.means) / len(self.means))
        object.__setattr__(self, "interval", self._interval())

    def _interval(self) -> Interval:
        share, spread, count = self.mean / self._top, self._spread / self._top**2, self._count
        if spread > 0.0:
            z, t = normal_factor(), t_factor(self.seeds - 1)
            count = min(count, z * z * share * (1 - share) / (t * t * spread))
        of = "sequences" if self.seeds == 1 else "seeds and sequences"
        return wilson(share, count, of) * self._top

    @property
    def _top(self) -> float:
        """Should a mean exceed `most` after all, it is no error to divide by."""
        return max(self.most, *self.means)

    @property
    def _count(self) -> float:
        """The sequences behind the mean; fewer than their sum if seeds have unequal numbers."""
        return self.seeds**2 / sum(1 / count for count in self.sequences)

    @property
    def _spread(self) -> float:
        """The variance of the mean, by the spread of the seeds."""
        return variance(self.means) / self.seeds if self.seeds > 1 else 0.0

    @property
    def variance(self) -> float:
        """That of the mean: by the spread of the seeds, and at least that of the sequences."""
        low, high = wilson(self.mean / self._top, self._count) * self._top
        return max(self._spread, ((high - low) / 2 / normal_factor()) ** 2)


def welch(first: OverSeeds, second: OverSeeds) -> Interval | None:
    """Of the first mean minus the second. One seed shows nothing: None."""
    if min(first.seeds, second.seeds) < 2:
        return None
    gap = fmean(first.means) - fmean(second.means)
    parts = [(one.variance, one.seeds - 1) for one in (first, second)]
    total = sum(part for part, _ in parts)
    freedom = total**2 / sum(part**2 / count for part, count in parts)
    half = t_factor(freedom) * math.sqrt(total)
    return Interval(gap - half, gap + half, "seeds and sequences")
