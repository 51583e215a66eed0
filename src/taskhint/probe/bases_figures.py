"""The two bases: lengths of their vectors and angles between them."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from taskhint.probe.bases import Bases
from taskhint.system.drawing import BLUE, GREEN, GREY, VERMILION, legend_below, new_figure, tidy

PAIR_COLOURS = {"within encoder": BLUE, "within decoder": VERMILION, "between": GREEN}
PAIR_LINES = {"within encoder": "-", "within decoder": "--", "between": ":"}


def bases_figure(bases: Bases) -> Figure:
    figure = new_figure(13.5, 4.1)
    norms, histogram, distance = figure.subplots(1, 3)
    _draw_norms(norms, bases)
    for pair, cosines in bases.cosines.items():
        style = {"color": PAIR_COLOURS[pair], "ls": PAIR_LINES[pair], "lw": 1.8}
        label = (
            f"{pair}: mean |cosine| {cosines.mean_size:.3f}, largest {cosines.largest_size:.2f}"
        )
        histogram.stairs(100 * cosines.histogram, cosines.edges, label=label, **style)
        distance.plot(cosines.distances, cosines.by_distance, **style)
    tidy(
        histogram,
        "How near to right angles",
        "cosine of the angle (0: right angle)",
        "pairs of symbols, %",
    )
    tidy(
        distance,
        "Are neighbouring symbols alike?",
        "distance between the two symbols",
        "mean cosine",
    )
    _mark_random(distance, bases)
    histogram.set_xlim(-0.8, 0.8)
    histogram.set_ylim(bottom=0)
    legend_below(figure, [histogram], 3)
    return figure


def _draw_norms(panel: Any, bases: Bases) -> None:
    first = int(bases.symbols[0])
    for basis, colour, marker in (("encoder", BLUE, "o"), ("decoder", VERMILION, "s")):
        values = bases.norms[basis]
        panel.plot(
            range(first, first + len(values)), values, marker, color=colour, ms=3, label=basis
        )
    panel.set_ylim(bottom=0)
    panel.legend(frameon=False, fontsize=9, loc="lower right")
    tidy(panel, "Length of each symbol's vector", "symbol", "norm")


def _mark_random(panel: Any, bases: Bases) -> None:
    for sign in (1, -1):
        panel.axhline(sign * bases.random_rms, color=GREY, lw=0.8, ls=(0, (2, 3)))
    place = panel.get_yaxis_transform()
    panel.text(
        0.99,
        bases.random_rms,
        "size for random directions",
        transform=place,
        fontsize=8,
        color=GREY,
        ha="right",
        va="bottom",
    )
