"""Accuracy by length, a panel per test distribution."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib.figure import Figure

from taskhint.evaluation.summary import Series

# Okabe and Ito's palette: told apart with any colour vision; markers differ too, for print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
MARKERS = "osD^vPX*"


def curves_figure(series: Sequence[Series]) -> Figure:
    distributions = sorted({s.distribution for s in series}, key=lambda name: (name != "uniform", name))
    labels = list(dict.fromkeys(s.label for s in series))
    figure = Figure(figsize=(5.2 * len(distributions) + 0.6, 4.6), layout="constrained")
    panels: Any = figure.subplots(1, len(distributions), squeeze=False, sharey=True)[0]
    for panel, distribution in zip(panels, distributions, strict=True):
        for one in (s for s in series if s.distribution == distribution):
            _draw(panel, one, labels.index(one.label))
        panel.set_title(f"{distribution} test sequences", fontsize=11)
        panel.set_xlabel("input length")
        panel.grid(alpha=0.25)
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
        _mark_training(panel, series)
    panels[0].set_ylabel("sequences without an error, %")
    panels[0].set_ylim(-3, 103)
    handles, names = _legend_entries(panels)
    columns = 1 if len(panels) == 1 else 2
    figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)
    return figure


def _draw(panel: Any, series: Series, number: int) -> None:
    colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
    lengths = list(series.points)
    points = list(series.points.values())
    panel.plot(
        lengths,
        [100 * p.mean for p in points],
        color=colour,
        marker=marker,
        ms=4.5,
        lw=1.6,
        label=series.label,
    )
    panel.fill_between(
        lengths, [100 * p.low for p in points], [100 * p.high for p in points], color=colour, alpha=0.15, lw=0
    )


def _mark_training(panel: Any, series: Sequence[Series]) -> None:
    longest = max(s.recipe.task.lengths.longest for s in series)
    panel.axvspan(0, longest, color="#000000", alpha=0.05, lw=0)
    panel.text(longest, 101, " trained up to here", fontsize=8, color="#666666", va="bottom")
    panel.set_xlim(left=0)


def _legend_entries(panels: Any) -> tuple[list[Any], list[str]]:
    found: dict[str, Any] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    return list(found.values()), list(found)


def as_svg(figure: Figure) -> str:
    """An <svg> element to put into a page."""
    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "taskhint", "svg.fonttype": "none"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :]
