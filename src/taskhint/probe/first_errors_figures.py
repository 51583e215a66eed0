"""First errors: in which way, at which step and where in the answer, by length."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from taskhint.probe.comparison import Comparison
from taskhint.probe.first_errors import FirstErrors
from taskhint.system.drawing import COLOURS, legend_below, new_figure, tidy

RIGHT_COLOUR = "#e6e6e6"


def errors_figure(errors: FirstErrors) -> Figure:
    """Way of failing, kind of step, and place in the answer."""
    figure = new_figure(13, 4.6)
    kinds, steps, places = figure.subplots(1, 3)
    _stack(kinds, errors)
    tidy(kinds, "How the first error goes wrong", "input length", "sequences, %")
    _step_rates(steps, errors)
    tidy(
        steps, "How risky each kind of step is", "input length", "first errors per 100 such steps"
    )
    image = _draw_places(places, errors)
    tidy(places, "Where in the answer it is", "input length", "tenth of the answer")
    places.grid(False)
    figure.colorbar(image, ax=places, label="% of all sequences", pad=0.02)
    kinds.legend(
        frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2
    )
    steps.legend(
        frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2
    )
    return figure


def _stack(panel: Any, errors: FirstErrors) -> None:
    """Bars of all sequences by their first error; what has none is light grey, on top."""
    lengths = [str(length) for length in errors.lengths]
    found = list(errors.lengths.values())
    bottom = [0.0] * len(lengths)
    for number, kind in enumerate(errors.errors):
        heights = [100 * one.share_of_error(kind) for one in found]
        panel.bar(
            lengths, heights, 0.82, bottom, color=COLOURS[(number + 1) % 7], label=kind, lw=0
        )
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    rest = [100 * one.share_right for one in found]
    panel.bar(lengths, rest, 0.82, bottom, color=RIGHT_COLOUR, label="no error", lw=0)
    panel.set_ylim(0, 100)


def _step_rates(panel: Any, errors: FirstErrors) -> None:
    for number, step in enumerate(errors.steps):
        risks = {n: one.risk_of_step(step) for n, one in errors.lengths.items()}
        known = {n: 100 * risk for n, risk in risks.items() if risk is not None}
        intervals = [errors.lengths[n].risk_interval(step) for n in known]
        low, high = [100 * one[0] for one in intervals], [100 * one[1] for one in intervals]
        panel.fill_between(list(known), low, high, color=COLOURS[number], alpha=0.12, lw=0)
        panel.plot(
            list(known),
            list(known.values()),
            color=COLOURS[number],
            marker="osD^"[number % 4],
            ms=4.5,
            lw=1.6,
            label=step,
        )
    panel.set_xlim(left=0)
    panel.set_ylim(bottom=0)


def _draw_places(panel: Any, errors: FirstErrors) -> Any:
    columns = [[100 * share for share in one.share_of_places] for one in errors.lengths.values()]
    table = [list(row) for row in zip(*columns, strict=True)]
    image = panel.imshow(table, cmap="Blues", origin="lower", aspect="auto", vmin=0, vmax=100)
    panel.set_xticks(range(len(columns)), [str(length) for length in errors.lengths])
    panel.set_yticks(range(len(table)), [str(number + 1) for number in range(len(table))])
    return image


def errors_comparison(comparison: Comparison) -> Figure:
    """The way of failing, a panel per run."""
    count = len(comparison.runs)
    columns = min(4, count)
    rows = -(-count // columns)
    figure = new_figure(3.4 * columns + 0.6, 3.0 * rows + 0.9)
    panels: Any = figure.subplots(rows, columns, squeeze=False, sharey=True)
    for panel, run in zip(panels.flatten(), comparison.runs, strict=False):
        _stack(panel, run.errors)
        tidy(panel, run.name, "input length")
    for panel in panels.flatten()[count:]:
        panel.set_visible(False)
    for row in panels:
        row[0].set_ylabel("sequences, %")
    legend_below(figure, panels.flatten()[:count], 4)
    return figure
