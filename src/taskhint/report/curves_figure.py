"""Accuracy by length, a panel per test distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from taskhint.evaluation.summary import Series
from taskhint.system.drawing import (
    COLOURS,
    MARKERS,
    legend_below,
    mark_training,
    new_figure,
    percent_axis,
    tidy,
)


def curves_figure(series: Sequence[Series]) -> Figure:
    distributions = sorted(
        {s.distribution for s in series}, key=lambda name: (name != "uniform", name)
    )
    labels = list(dict.fromkeys(s.label for s in series))
    longest = max(s.recipe.task.lengths.max_length for s in series)
    figure = new_figure(5.2 * len(distributions) + 0.6, 4.6)
    panels: Any = figure.subplots(1, len(distributions), squeeze=False, sharey=True)[0]
    for panel, distribution in zip(panels, distributions, strict=True):
        for one in (s for s in series if s.distribution == distribution):
            _draw(panel, one, labels.index(one.label))
        tidy(panel, f"{distribution} test sequences", "input length")
        mark_training(panel, longest)
        percent_axis(panel)  # behind the mark, so that it is in the picture
    panels[0].set_ylabel("sequences without an error, %")
    legend_below(figure, panels, 1 if len(panels) == 1 else 2)
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
        lengths,
        [100 * p.low for p in points],
        [100 * p.high for p in points],
        color=colour,
        alpha=0.15,
        lw=0,
    )
