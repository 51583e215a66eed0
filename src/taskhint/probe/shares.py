"""How often something held, and means over sequences, with their intervals and their lines by
length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from taskhint.system.drawing import COLOURS, MARKERS
from taskhint.system.stats import student_half, wilson

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Share:
    """`held` of `asked` positions in `sequences` sequences, and the 95% Wilson interval of that
    share. It is None if there was no position to ask.
    """

    share: float | None
    low: float
    high: float
    held: int
    asked: int
    sequences: int


def share_of(held: npt.ArrayLike, asked: npt.ArrayLike) -> Share:
    """From the counts of each sequence. Sequences without a position to ask say nothing."""
    ours, all_ = np.array(held, dtype=float), np.array(asked, dtype=float)
    ours, all_ = ours[all_ > 0], all_[all_ > 0]
    if not len(all_):
        return Share(None, 0.0, 1.0, 0, 0, 0)
    share = int(ours.sum()) / int(all_.sum())
    low, high = wilson(share, independent_positions(ours, all_))
    return Share(share, low, high, int(ours.sum()), int(all_.sum()), len(all_))


def independent_positions(held: Floats, asked: Floats) -> float:
    """How many independent positions would vary from sample to sample as the shares of whole
    sequences do.

    Positions of one sequence go together. It is never more than all positions and never less than
    the sequences.
    """
    count, total = len(asked), asked.sum()
    mean = held.sum() / total
    variance = count / max(1, count - 1) * ((held - mean * asked) ** 2).sum() / total**2
    effective = mean * (1 - mean) / variance if variance > 0 else 0.0
    return float(min(max(effective, count), total))


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
    return Means(rows.mean(axis=0), student_half(rows))


def draw_shares(
    panel: Any, shares: Mapping[int, Share], number: int, label: str, **style: Any
) -> None:
    """A share by length in percent with its interval; lengths without a position to ask are left
    out.
    """
    asked = {n: share for n, share in shares.items() if share.share is not None}
    points = [(100 * (s.share or 0.0), 100 * s.low, 100 * s.high) for s in asked.values()]
    draw_line(panel, list(asked), points, number, label, **style)


def draw_means(
    panel: Any,
    means: Mapping[int, Means],
    number: int,
    label: str,
    scale: float = 1.0,
    **style: Any,
) -> None:
    """Means by length with their intervals."""
    points = [
        tuple(scale * float(x) for x in (m.mean, m.mean - m.half, m.mean + m.half))
        for m in means.values()
    ]
    draw_line(panel, list(means), points, number, label, **style)


def draw_line(
    panel: Any,
    lengths: Sequence[int],
    points: Sequence[tuple[float, ...]],
    number: int,
    label: str,
    **style: Any,
) -> None:
    """Points are (value, low, high). The number chooses colour and marker."""
    look: dict[str, Any] = {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "ms": 4.5,
        "lw": 1.6,
        "label": label,
    }
    look |= style
    panel.plot(lengths, [point[0] for point in points], **look)
    low, high = [point[1] for point in points], [point[2] for point in points]
    panel.fill_between(lengths, low, high, color=look["color"], alpha=0.15, lw=0)
