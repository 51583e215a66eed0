"""An experiment's curves: a panel per quantity and test distribution, the paper's numbers as open marks."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from taskhint.figures.curves import COLOURS, MARKERS
from taskhint.figures.probe_style import legend_below, mark_training, new_figure, tidy
from taskhint.reproduce.experiment import Panel
from taskhint.reproduce.findings import Finding

MOST_ACROSS = 4
FEW_ARMS = 5  # more have fainter bands


def experiment_figure(finding: Finding) -> Figure:
    wanted = finding.experiment.panels
    down = -(-len(wanted) // MOST_ACROSS)
    across = -(-len(wanted) // down)
    width = 6.4 if across == 1 else 3.7 * across + 0.6
    figure = new_figure(width, 3.4 * down + 0.9)
    panels: Any = figure.subplots(down, across, squeeze=False).ravel()
    for axes, panel in zip(panels, wanted, strict=False):
        for number, arm in enumerate(finding.experiment.arms):
            _draw_arm(axes, finding, arm.label, panel, number)
        axes.fill_between([], [], [], color="#333333", alpha=0.2, lw=0, label="95% interval over seeds")
        _draw_published(axes, finding, panel)
        tidy(axes, panel.title, "input length")
        axes.set_xlim(0, 1.03 * max(finding.experiment.lengths))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if panel.quantity != "edit distance":
            axes.set_ylim(-4, 104)
        else:
            axes.set_ylim(bottom=0)
        longest = finding.experiment.arms[0].at(finding.scale).task.lengths.longest
        mark_training(axes, longest if longest < max(finding.experiment.lengths) else None)
    for axes in panels[len(wanted) :]:
        axes.set_axis_off()
    for place, panel in enumerate(wanted):
        if place % across == 0 or panel.quantity != wanted[place - 1].quantity:
            panels[place].set_ylabel("edit distance" if panel.quantity == "edit distance" else "%")
    legend_below(figure, panels, min(across + 1, 3))
    return figure


def _draw_arm(axes: Any, finding: Finding, arm: str, panel: Panel, number: int) -> None:
    scale = 1.0 if panel.quantity == "edit distance" else 100.0
    cells = {n: finding.cell(arm, panel, n) for n in finding.experiment.lengths}
    found = {n: cell for n, cell in cells.items() if cell is not None}
    if not found:
        return
    colour = COLOURS[number % len(COLOURS)]
    means = [scale * cell.mean for cell in found.values()]
    look = {"color": colour, "marker": MARKERS[number % len(MARKERS)], "ls": "-" if number < len(COLOURS) else "--"}
    axes.plot(list(found), means, **look, ms=4.5, lw=1.6, label=arm)
    low, high = zip(*(cell.interval for cell in found.values()), strict=True)
    faint = 0.15 if len(finding.experiment.arms) <= FEW_ARMS else 0.07
    axes.fill_between(list(found), [scale * x for x in low], [scale * x for x in high], color=colour, alpha=faint, lw=0)


def _draw_published(axes: Any, finding: Finding, panel: Panel) -> None:
    if panel.quantity != "accuracy":
        return
    labels = [arm.label for arm in finding.experiment.arms]
    for number in finding.experiment.published:
        if number.distribution == panel.distribution:
            colour = COLOURS[labels.index(number.arm) % len(COLOURS)]
            axes.plot(number.length, number.percent, "*", ms=11, mfc="none", mec=colour, mew=1.3, clip_on=False)
    if any(number.distribution == panel.distribution for number in finding.experiment.published):
        axes.plot([], [], "*", ms=11, mfc="none", mec="#333333", mew=1.3, ls="none", label="the paper's number")
