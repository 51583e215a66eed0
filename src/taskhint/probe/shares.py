"""How often something held, with an interval that knows that positions of one sequence are not
independent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from taskhint.evaluation.curve import CONFIDENCE

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Share:
    """`held` of `asked` positions in `sequences` sequences, and the 95% Wilson interval of that
    share.

    The interval counts `effective` independent positions: as many as would vary from sample to
    sample as the shares of whole sequences do. It is never more than all positions and never less
    than the sequences.
    """

    held: int
    asked: int
    sequences: int
    effective: float

    @property
    def share(self) -> float | None:
        """None if there was no position to ask."""
        return self.held / self.asked if self.asked else None

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.held / self.asked, self.effective) if self.asked else (0.0, 1.0)

    def to_json(self) -> dict[str, Any]:
        low, high = self.interval
        counts = {"held": self.held, "asked": self.asked, "sequences": self.sequences}
        return {"share": self.share, "low": low, "high": high, **counts}


def share_of(held: npt.ArrayLike, asked: npt.ArrayLike) -> Share:
    """From the counts of each sequence. Sequences without a position to ask say nothing."""
    ours, all_ = np.array(held, dtype=float), np.array(asked, dtype=float)
    ours, all_ = ours[all_ > 0], all_[all_ > 0]
    count, total = len(all_), all_.sum()
    if not count:
        return Share(0, 0, 0, 0.0)
    mean = ours.sum() / total
    variance = count / max(1, count - 1) * ((ours - mean * all_) ** 2).sum() / total**2
    effective = mean * (1 - mean) / variance if variance > 0 else 0.0
    return Share(int(ours.sum()), int(total), count, float(min(max(effective, count), total)))


def wilson(share: float, count: float) -> tuple[float, float]:
    """Wilson's interval for a share of a number of observations that need not be whole."""
    from scipy.stats import norm

    z = float(norm.ppf((1 + CONFIDENCE) / 2))
    centre = share + z * z / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    shrink = 1 + z * z / count
    return max(0.0, (centre - half) / shrink), min(1.0, (centre + half) / shrink)


@dataclass(frozen=True)
class Means:
    """The mean over sequences of an array per sequence, and half the width of its 95% interval
    (Student's t).
    """

    mean: Floats
    half: Floats


def means_of(rows: Floats) -> Means:
    """Of (sequences, ...) values. One sequence alone has no interval; its half width is given as
    0.
    """
    from scipy.stats import t

    count = len(rows)
    if count < 2:
        return Means(rows.mean(axis=0), np.zeros(rows.shape[1:]))
    spread = rows.std(axis=0, ddof=1) / math.sqrt(count)
    return Means(rows.mean(axis=0), float(t.ppf((1 + CONFIDENCE) / 2, count - 1)) * spread)
