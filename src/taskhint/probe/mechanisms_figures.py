"""Mechanisms by length: of one run, and of several side by side; and where the answer appears."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from taskhint.probe.comparison import Comparison
from taskhint.probe.lens import StageCurves
from taskhint.probe.mechanisms import MechanismCurves
from taskhint.probe.shares import Share
from taskhint.system.drawing import (
    COLOURS,
    MARKERS,
    legend_below,
    mark_training,
    new_figure,
    percent_axis,
    tidy,
)

PANELS = {
    "min-finding": ("Min-finding", "⊥, after attention 1"),
    "identity+successor": ("Identity+Successor", "answer, after the last attention"),
    "denoising": ("Denoising", "answer, last MLP"),
    "copy": ("Copy", "input, after attention 1"),
}
PARTS = {
    "identity+successor": {
        "moving on": "identity+successor, moving on",
        "repeating": "identity+successor, repeating",
    },
    "copy": {"after the last attention": "copy to the last block"},
}


def mechanisms_figure(curves: MechanismCurves, trained_up_to: int | None) -> Figure:
    """A panel per mechanism; its parts are drawn thinner."""
    shown = [name for name in PANELS if name in curves.shares]
    figure = new_figure(3.5 * len(shown) + 0.6, 3.9)
    panels: Any = figure.subplots(1, len(shown), squeeze=False, sharey=True)[0]
    for panel, name in zip(panels, shown, strict=True):
        _draw_shares(panel, curves.shares[name], 0, "whole")
        for number, (label, part) in enumerate(PARTS.get(name, {}).items()):
            _draw_shares(panel, curves.shares[part], number + 1, label, lw=1.1, ls="--", ms=3.5)
        if name in PARTS:
            panel.get_lines()[0].set_label("all" if len(PARTS[name]) > 1 else "after attention 1")
            panel.legend(frameon=False, fontsize=8, loc="best")
        tidy(panel, "\n".join(PANELS[name]), "input length")
        mark_training(panel, trained_up_to)
        percent_axis(panel)
    panels[0].set_ylabel("held, % of positions")
    return figure


def mechanisms_comparison(comparison: Comparison) -> Figure:
    """A panel per mechanism, a line per run."""
    shown = [
        name for name in PANELS if all(name in run.mechanisms.shares for run in comparison.runs)
    ]
    figure = new_figure(3.5 * len(shown) + 0.6, 4.3)
    panels: Any = figure.subplots(1, len(shown), squeeze=False, sharey=True)[0]
    for panel, name in zip(panels, shown, strict=True):
        for number, run in enumerate(comparison.runs):
            _draw_shares(panel, run.mechanisms.shares[name], number, run.name)
        tidy(panel, "\n".join(PANELS[name]), "input length")
        mark_training(panel, comparison.trained_up_to)
        percent_axis(panel)
    panels[0].set_ylabel("held, % of positions")
    legend_below(figure, panels, 4)
    return figure


def stages_figure(curves: StageCurves, trained_up_to: int | None) -> Figure:
    """How often the right next symbol is already the largest, a line per stage."""
    figure = new_figure(9.5, 4.3)
    panels: Any = figure.subplots(1, 2, sharey=True)
    for panel, shares, title in zip(
        panels,
        (curves.start, curves.answer),
        ("At ⊥: the first answer symbol", "In the answer: every later symbol"),
        strict=True,
    ):
        for number, (stage, by_length) in enumerate(shares.items()):
            _draw_shares(panel, by_length, number, stage, ls="-" if "after" in stage else "--")
        tidy(panel, title, "input length")
        mark_training(panel, trained_up_to)
        percent_axis(panel)
    panels[0].set_ylabel("right next symbol is the largest, %")
    legend_below(figure, panels, 4)
    return figure


def _draw_shares(
    panel: Any, shares: Mapping[int, Share], number: int, label: str, **style: Any
) -> None:
    """A share by length in percent with its interval; lengths without a position to ask are left
    out.
    """
    asked = {length: share for length, share in shares.items() if share.share is not None}
    colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
    lengths = list(asked)
    means = [100 * (share.share or 0.0) for share in asked.values()]
    panel.plot(
        lengths,
        means,
        **{"color": colour, "marker": marker, "ms": 4.5, "lw": 1.6, "label": label, **style},
    )
    low = [100 * share.interval[0] for share in asked.values()]
    high = [100 * share.interval[1] for share in asked.values()]
    panel.fill_between(lengths, low, high, color=style.get("color", colour), alpha=0.15, lw=0)
