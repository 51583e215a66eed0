"""An experiment's curves: a panel per quantity and test distribution, the paper's numbers as open
marks.

Ticks stand at the lengths that were measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from taskhint.experiments.experiment import Panel
from taskhint.experiments.findings import Finding
from taskhint.system.drawing import COLOURS, MARKERS, legend_below, mark_training, new_figure, tidy

MOST_ACROSS = 4
TICK_ROOM = 0.08  # of the longest length: ticks that are closer to the next are left out
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
        axes.fill_between(
            [], [], [], color="#333333", alpha=0.2, lw=0, label="95% interval over seeds"
        )
        _draw_published(axes, finding, panel)
        _draw_trivial(axes, finding, panel)
        tidy(axes, panel.title, "input length")
        axes.set_xlim(0, 1.03 * max(finding.experiment.lengths))
        axes.set_xticks(_ticks(finding.experiment.lengths))
        if panel.quantity != "edit distance":
            axes.set_ylim(-4, 104)
        longest = finding.experiment.arms[0].at(finding.scale).task.lengths.max_length
        mark_training(axes, longest if longest < max(finding.experiment.lengths) else None)
    for axes in panels[len(wanted) :]:
        axes.set_axis_off()
    distances = [
        axes
        for axes, panel in zip(panels, wanted, strict=False)
        if panel.quantity == "edit distance"
    ]
    for axes in distances:
        axes.set_ylim(0, max(one.get_ylim()[1] for one in distances))
    for place, panel in enumerate(wanted):
        if place % across == 0 or panel.quantity != wanted[place - 1].quantity:
            panels[place].set_ylabel(
                panel.quantity + ("" if panel.quantity == "edit distance" else ", %")
            )
    legend_below(figure, panels, min(across + 1, 3))
    return figure


def _ticks(lengths: Sequence[int]) -> list[int]:
    """The measured lengths, as far as there is room for them."""
    ticks: list[int] = []
    for length in sorted(lengths, reverse=True):
        if not ticks or ticks[-1] - length >= TICK_ROOM * ticks[0]:
            ticks.append(length)
    return ticks


def _draw_arm(axes: Any, finding: Finding, arm: str, panel: Panel, number: int) -> None:
    scale = 1.0 if panel.quantity == "edit distance" else 100.0
    cells = {n: finding.cell(arm, panel, n) for n in finding.experiment.lengths}
    found = {n: cell for n, cell in cells.items() if cell is not None}
    if not found:
        return
    colour = COLOURS[number % len(COLOURS)]
    means = [scale * cell.mean for cell in found.values()]
    look = {
        "color": colour,
        "marker": MARKERS[number % len(MARKERS)],
        "ls": "-" if number < len(COLOURS) else "--",
    }
    axes.plot(list(found), means, **look, ms=4.5, lw=1.6, label=arm)
    low, high = zip(*(cell.interval for cell in found.values()), strict=True)
    faint = 0.15 if len(finding.experiment.arms) <= FEW_ARMS else 0.07
    axes.fill_between(
        list(found),
        [scale * x for x in low],
        [scale * x for x in high],
        color=colour,
        alpha=faint,
        lw=0,
    )


def _draw_published(axes: Any, finding: Finding, panel: Panel) -> None:
    for number, arm in enumerate(finding.experiment.arms):
        look = {
            "mfc": "none",
            "mec": COLOURS[number % len(COLOURS)],
            "mew": 1.3,
            "clip_on": False,
            "ls": "none",
        }
        for length, published in finding.experiment.printed(arm.label, panel).items():
            axes.plot(length, published.percent, **look, **_published_mark(published.bound))
    for bound in sorted(
        {p.bound for p in finding.experiment.published if p.distribution == panel.distribution}
    ):
        if panel.quantity == "accuracy":
            label = "the paper: below" if bound else "the paper's number"
            axes.plot(
                [],
                [],
                mfc="none",
                mec="#333333",
                mew=1.3,
                ls="none",
                label=label,
                **_published_mark(bound),
            )


def _published_mark(bound: bool) -> dict[str, Any]:
    return {"marker": "v", "ms": 8} if bound else {"marker": "*", "ms": 11}


def _draw_trivial(axes: Any, finding: Finding, panel: Panel) -> None:
    """What counts as min-finding although nothing is found: the smallest symbol of all, whatever
    the input.
    """
    task = finding.experiment.arms[0].at(finding.scale).task
    if panel.quantity == "min-finding" and "minimum" in task.step_kinds:
        lengths = finding.experiment.lengths
        shares = [100 * (1 - (1 - 1 / task.vocab.symbols) ** n) for n in lengths]
        axes.plot(
            lengths,
            shares,
            ls=":",
            lw=1.6,
            color="#000000",
            label="always the smallest symbol of all",
        )
