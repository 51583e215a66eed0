"""The field's table as a heat map; the curves of one task, a panel for every way to train it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from taskhint.experiments.field import EXPERIMENTS, ROWS, SCHEMES, Row
from taskhint.experiments.field.row import TIMES
from taskhint.experiments.field.standing import WITHOUT, Standing, Table, predicted
from taskhint.experiments.findings import Finding
from taskhint.report.figures import draw_band, experiment_figure
from taskhint.system.drawing import GREY, legend_below, mark_training, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = [times for times in TIMES if times >= 1]
SHADES = ("#e8f0f7", "#c6dbec", "#94c1e0", "#5aa0cd", "#2a77b2", "#08386e")
WHITE_FROM = 3.0  # times: text is white from this shade on
HATCH: dict[str, Any] = {"facecolor": "#ffffff", "edgecolor": "#d6d6d6", "hatch": "////"}
FIELD_WORDS = {True: "carries", False: "fails", None: ""}
THEORY_AT = -0.95  # left of the first column
MOST_ACROSS = 3
FAINT = 0.07


def heat_map(table: Table) -> Figure:
    """Rows are tasks, columns are schemes, a cell is the reach of the median seed in training
    lengths.
    """
    schemes = [name for name in SCHEMES if any(name in cells for cells in table.values())]
    figure = new_figure(3.4 + 0.86 * len(schemes), 2.2 + 0.36 * len(table))
    figure.suptitle(caption(table), fontsize=8.5, color="#333333")
    axes: Any = figure.subplots()
    for y, (row, cells) in enumerate(table.items()):
        axes.text(THEORY_AT, y, FIELD_WORDS[predicted(row, WITHOUT)], **_centred("#333333"))
        for x, scheme in enumerate(schemes):
            _draw_cell(axes, x, y, cells.get(scheme))
    _axes(axes, table, schemes)
    _legend(figure)
    return figure


def caption(table: Table) -> str:
    """What a cell says, of how many seeds and sequences."""
    seeds = {len(standing.reaches) for cells in table.values() for standing in cells.values()}
    counted = " to ".join(map(str, sorted({min(seeds), max(seeds)})))
    several = f"the median seed, and in small print of the worst and the best of {counted} seeds"
    whose = several if max(seeds) > 1 else "1 seed"
    examples = max(experiment.examples for experiment in EXPERIMENTS)
    return (
        f"Reach of {whose}, in training lengths:\nthe longest tested length up to which at least "
        f"90% of {examples:,} sequences of every length are right"
    )


def _draw_cell(axes: Any, x: int, y: int, standing: Standing | None) -> None:
    from matplotlib.patches import Rectangle

    corner = (x - 0.48, y - 0.46)
    if standing is None:
        axes.text(x, y, "·", **_centred(GREY))
        return
    times = standing.times
    look: dict[str, Any] = {"facecolor": shade(times), "edgecolor": "none"} if times else HATCH
    axes.add_patch(Rectangle(corner, 0.96, 0.92, lw=0, **look))
    words = standing.text.replace("not learned", "–", 1)
    median, _, spread = words.partition(" (")
    colour = "#ffffff" if times >= WHITE_FROM else "#1b1b1b"
    lift = 0.14 if spread else 0.0
    axes.text(x, y - lift, median, **_centred(colour))
    if spread:
        axes.text(x, y + 0.24, spread.rstrip(")"), **_centred(colour, 6.5))


def shade(times: float) -> str:
    """Darker for a longer reach."""
    return SHADES[max(place for place, step in enumerate(STEPS) if times >= step)]


def _centred(colour: str, size: float = 8.5) -> dict[str, Any]:
    return {"ha": "center", "va": "center", "color": colour, "fontsize": size}


def _axes(axes: Any, table: Table, schemes: list[str]) -> None:
    axes.set_xlim(THEORY_AT - 0.5, len(schemes) - 0.5)
    axes.set_ylim(len(table) - 0.5, -0.5)
    labels = [SCHEMES[name].label for name in schemes]
    axes.set_xticks([THEORY_AT, *range(len(schemes))], ["theory for no positions", *labels])
    axes.set_yticks(range(len(table)), [row.label for row in table])
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=8)
    axes.tick_params(axis="x", labelrotation=40)
    for label in axes.get_xticklabels():
        label.set(ha="left", rotation_mode="anchor")
    for side in axes.spines.values():
        side.set_visible(False)
    families = [row.family for row in table]
    for y in range(1, len(families)):
        if families[y] != families[y - 1]:
            axes.axhline(y - 0.5, color="#d0d0d0", lw=0.8)


def _legend(figure: Figure) -> None:
    from matplotlib.patches import Patch

    entries = [
        Patch(facecolor="none", edgecolor="none", label="· not tried"),
        Patch(**HATCH, lw=0.5, label="– training lengths not learned"),
        *(
            Patch(facecolor=shade(step), edgecolor="#b9b9b9", lw=0.5, label=_step(step))
            for step in STEPS
        ),
    ]
    figure.legend(
        handles=entries, loc="outside lower center", ncols=4, frameon=False, fontsize=8.5
    )


def _step(times: float) -> str:
    if times == 1:
        return "1×: training lengths alone"
    return f"{times:g}× training length" + (" or more" if times == STEPS[-1] else "")


def figure_of(finding: Finding) -> Figure:
    """The curves of an experiment: those of the field's table have a panel for every row."""
    rows = [row for row in ROWS if row.experiment == finding.experiment.name]
    if not rows or any(arm not in finding.runs for row in rows for arm in row.arms.values()):
        return experiment_figure(finding)
    return _rows_figure(finding, rows)


def _rows_figure(finding: Finding, rows: list[Row]) -> Figure:
    across = min(len(rows), MOST_ACROSS)
    down = -(-len(rows) // across)
    figure = new_figure(max(6.4, 3.7 * across + 0.6), 3.2 * down + 1.4)
    panels: Any = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
    for axes, row in zip(panels, rows, strict=False):
        _draw_row(axes, finding, row)
    for axes in panels[len(rows) :]:
        axes.set_axis_off()
    for place in range(0, len(rows), across):
        panels[place].set_ylabel("sequences without an error, %")
    legend_below(figure, panels, min(4, across + 2))
    return figure


def _draw_row(axes: Any, finding: Finding, row: Row) -> None:
    curves = finding.panels[finding.experiment.panels[0]].curves
    numbers: Mapping[str, int] = {name: number for number, name in enumerate(SCHEMES)}
    for scheme, arm in row.arms.items():
        if curves[arm]:
            draw_band(axes, curves[arm], SCHEMES[scheme].label, numbers[scheme], alpha=FAINT)
    tidy(axes, row.label, row.task.length_is)
    lengths = finding.experiment.lengths
    axes.set_xlim(0, 1.03 * max(lengths))
    axes.set_ylim(-4, 104)
    mark_training(axes, finding.trained_up_to)
