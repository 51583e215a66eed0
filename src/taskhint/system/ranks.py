"""How well one ranking predicts another: Spearman's and Kendall's correlation, with an interval.

Both are functions of the signs of all differences. So a bootstrap sample is nothing but a weight
for every item, how often it was drawn, and all samples are computed at once.

Shapes: n items, R bootstrap samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from taskhint.system.errors import UserError
from taskhint.system.stats import CONFIDENCE, Floats, Interval

RESAMPLES = 10_000
FEWEST = 3


@dataclass(frozen=True)
class RankCorrelation:
    """Of two quantities over `items`; the intervals are percentiles of the bootstrap over
    items.
    """

    items: int
    spearman: float
    kendall: float
    spearman_interval: Interval
    kendall_interval: Interval


def rank_correlation(
    first: npt.ArrayLike, second: npt.ArrayLike, resamples: int = RESAMPLES, seed: int = 0
) -> RankCorrelation:
    """Ties count as such: midranks for Spearman's, τ-b for Kendall's. The same seed gives the same
    intervals.
    """
    x, y = (np.asarray(values, dtype=np.float64) for values in (first, second))
    if len(x) != len(y) or len(x) < FEWEST:
        raise UserError(
            f"a rank correlation needs at least {FEWEST} pairs, got {len(x)} and {len(y)}"
        )
    if len(np.unique(x)) == 1 or len(np.unique(y)) == 1:
        raise UserError("a rank correlation needs values that differ, got all the same")
    signs = _signs(x), _signs(y)
    once = np.ones((1, len(x)))
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(len(x), np.full(len(x), 1 / len(x)), size=resamples).astype(np.float64)
    return RankCorrelation(
        len(x),
        float(_spearman(*signs, once)[0]),
        float(_kendall(*signs, once)[0]),
        _interval(_spearman(*signs, drawn)),
        _interval(_kendall(*signs, drawn)),
    )


def _signs(values: Floats) -> Floats:
    """(n, n)"""
    return np.sign(values[:, None] - values[None, :])


def _spearman(x: Floats, y: Floats, weights: Floats) -> Floats:
    """(R,) An item's rank, less the mean rank, is half the sum of its signs."""
    ranks_x, ranks_y = weights @ x.T, weights @ y.T
    product, squares = (weights * ranks_x * ranks_y).sum(1), []
    for ranks in (ranks_x, ranks_y):
        squares.append((weights * ranks**2).sum(1))
    return _ratio(product, squares[0] * squares[1])


def _kendall(x: Floats, y: Floats, weights: Floats) -> Floats:
    """(R,)"""
    product, first, second = (
        ((weights @ (a * b)) * weights).sum(1) for a, b in ((x, y), (x, x), (y, y))
    )
    return _ratio(product, first * second)


def _ratio(product: Floats, square: Floats) -> Floats:
    """Not a number where one of the two has no two values that differ."""
    found = np.full(len(product), np.nan)
    np.divide(product, np.sqrt(square), out=found, where=square > 0)
    return found


def _interval(values: Floats) -> Interval:
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.nanpercentile(values, [tail, 100 - tail])
    return Interval(float(low), float(high), "arms")
