"""Curves by length: of any recipes, and of an experiment's arms with the paper's numbers as open
marks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from taskhint.evaluation.summary import Series
from taskhint.experiments.experiment import Panel, Published
from taskhint.experiments.findings import Finding
from taskhint.system.drawing import (
    COLOURS,
    MARKERS,
    legend_below,
    mark_training,
    new_figure,
    percent_axis,
    tidy,
)
from taskhint.system.stats import OverSeeds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ACROSS = 4
TICK_ROOM = 0.08  # of the longest length: ticks that are closer to the next are left out
MOST_LINES = 16  # eight colours, each with a full and a broken line
FEW_ARMS = 5  # more have fainter bands
INTERVAL = "95% interval: seeds and sequences"


def draw_band(
    axes: Any,
    points: Mapping[int, OverSeeds],
    label: str,
    number: int,
    factor: float = 100.0,
    alpha: float = 0.15,
) -> None:
    """A line of means by length; `number` decides its look. The band of their intervals has the
    lengths at which all seeds were measured.
    """
    colour = COLOURS[number % len(COLOURS)]
    look = {
        "color": colour,
        "marker": MARKERS[number % len(MARKERS)],
        "ls": "-" if number < len(COLOURS) else "--",
    }
    means = [factor * point.mean for point in points.values()]
    axes.plot(list(points), means, **look, ms=4.5, lw=1.6, label=label)
    seeds = max(point.seeds for point in points.values())
    whole = {n: point.interval for n, point in points.items() if point.seeds == seeds}
    low, high = ([factor * edge for edge in edges] for edges in zip(*whole.values(), strict=True))
    axes.fill_between(list(whole), low, high, color=colour, alpha=alpha, lw=0)


def curves_figure(series: Sequence[Series]) -> Figure:
    """Accuracy by length, a panel per test distribution."""
    distributions = sorted(
        {s.distribution for s in series}, key=lambda name: (name != "uniform", name)
    )
    longest = max(s.recipe.task.lengths.max_length for s in series)
    count = len({s.label for s in series})
    labels = best_labels(series)
    note = f" (the best {len(labels)} of {count:,} recipes)" if len(labels) < count else ""
    figure = new_figure(5.2 * len(distributions) + 0.6, 4.6)
    panels: Any = figure.subplots(1, len(distributions), squeeze=False, sharey=True)[0]
    for panel, distribution in zip(panels, distributions, strict=True):
        for one in (s for s in series if s.distribution == distribution and s.label in labels):
            points = {n: point.accuracy for n, point in one.points.items()}
            draw_band(panel, points, one.label, labels.index(one.label))
        tidy(panel, f"{distribution} test sequences{note}", "input length")
        mark_training(panel, longest)
        percent_axis(panel)  # behind the mark, so that it is in the picture
    panels[0].set_ylabel("sequences without an error, %")
    legend_below(figure, panels, 1 if len(panels) == 1 else 2)
    return figure


def best_labels(series: Sequence[Series]) -> list[str]:
    """As many as can be told apart: of more, those with the highest accuracy at the longest
    length.
    """
    labels = list(dict.fromkeys(s.label for s in series))
    if len(labels) <= MOST_LINES:
        return labels
    ends = {s.label: s.points[max(s.points)].accuracy.mean for s in reversed(series)}
    best = set(sorted(labels, key=lambda label: -ends[label])[:MOST_LINES])
    return [label for label in labels if label in best]


def experiment_figure(finding: Finding) -> Figure:
    """A panel per quantity and test distribution; ticks stand at measured lengths."""
    wanted = finding.experiment.panels
    down = -(-len(wanted) // MOST_ACROSS)
    across = -(-len(wanted) // down)
    width = 6.4 if across == 1 else 3.7 * across + 0.6
    figure = new_figure(width, 3.4 * down + 0.9)
    panels: Any = figure.subplots(down, across, squeeze=False).ravel()
    for axes, panel in zip(panels, wanted, strict=False):
        _draw_panel(axes, finding, panel)
    for axes in panels[len(wanted) :]:
        axes.set_axis_off()
    pairs = zip(panels, wanted, strict=False)
    distances = [axes for axes, panel in pairs if not panel.quantity.in_percent]
    for axes in distances:
        axes.set_ylim(0, max(one.get_ylim()[1] for one in distances))
    for place, panel in enumerate(wanted):
        if place % across == 0 or panel.quantity != wanted[place - 1].quantity:
            unit = ", %" if panel.quantity.in_percent else ""
            panels[place].set_ylabel(panel.quantity.name + unit)
    legend_below(figure, panels, min(across + 1, 3))
    return figure


def _draw_panel(axes: Any, finding: Finding, panel: Panel) -> None:
    lengths = finding.experiment.lengths
    arms = finding.experiment.arms
    faint = 0.15 if len(arms) <= FEW_ARMS else 0.07
    factor = 100.0 if panel.quantity.in_percent else 1.0
    shown = finding.panels[panel]
    for number, arm in enumerate(arms):
        if shown.curves[arm]:
            draw_band(axes, shown.curves[arm], arm.label, number, factor, faint)
    axes.fill_between([], [], [], color="#333333", alpha=0.2, lw=0, label=INTERVAL)
    _draw_published(axes, list(shown.published.values()))
    if shown.baseline is not None:
        label, shares = shown.baseline
        values = [factor * share for share in shares.values()]
        axes.plot(list(shares), values, ls=":", lw=1.6, color="#000000", label=label)
    tidy(axes, panel.title, "input length")
    axes.set_xlim(0, 1.03 * max(lengths))
    axes.set_xticks(_ticks(lengths))
    if panel.quantity.in_percent:
        axes.set_ylim(-4, 104)
    longest = finding.trained_up_to
    mark_training(axes, longest if longest < max(lengths) else None)


def _ticks(lengths: Sequence[int]) -> list[int]:
    """The measured lengths, as far as there is room for them."""
    ticks: list[int] = []
    for length in sorted(lengths, reverse=True):
        if not ticks or ticks[-1] - length >= TICK_ROOM * ticks[0]:
            ticks.append(length)
    return ticks


def _draw_published(axes: Any, by_arm: Sequence[Mapping[int, Published]]) -> None:
    bounds = set()
    for number, of_arm in enumerate(by_arm):
        colour = COLOURS[number % len(COLOURS)]
        for length, published in of_arm.items():
            _mark(axes, [length], [published.percent], published.bound, colour)
            bounds.add(published.bound)
    for bound in sorted(bounds):
        label = "the paper: below" if bound else "the paper's number"
        _mark(axes, [], [], bound, "#333333", label)


def _mark(
    axes: Any, x: list[int], y: list[float], bound: bool, colour: str, label: str | None = None
) -> None:
    shape = {"marker": "v", "ms": 8} if bound else {"marker": "*", "ms": 11}
    # A mark at the edge is shown in full; an unclipped one without a place would break the layout.
    look = {"mfc": "none", "mec": colour, "mew": 1.3, "ls": "none", "clip_on": not x}
    axes.plot(x, y, **look, **shape, label=label)
