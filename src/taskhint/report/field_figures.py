"""The field's table, and the accuracies of one task, as heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from taskhint.experiments.field import EXPERIMENTS, ROWS, SCHEMES, Row
from taskhint.experiments.field.row import TIMES
from taskhint.experiments.field.standing import WITHOUT, Standing, Table, predicted
from taskhint.experiments.findings import Finding
from taskhint.report.figures import experiment_figure
from taskhint.system.drawing import GREY, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = [times for times in TIMES if times >= 1]
SHADES = ("#e8f0f7", "#c6dbec", "#94c1e0", "#5aa0cd", "#2a77b2", "#08386e")
WHITE_FROM = 3.0  # times: text is white from this shade on
HATCH: dict[str, Any] = {"facecolor": "#ffffff", "edgecolor": "#d6d6d6", "hatch": "////"}
FIELD_WORDS = {True: "carries", False: "fails", None: ""}
THEORY_AT = -0.95  # left of the first column


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
    axes.tick_params(axis="x", labelrotation=40)
    for label in axes.get_xticklabels():
        label.set(ha="left", rotation_mode="anchor")
    _without_frame(axes)
    _separate(axes, [row.family for row in table])


def _without_frame(axes: Any) -> None:
    axes.tick_params(length=0, labelsize=8)
    for side in axes.spines.values():
        side.set_visible(False)


def _separate(axes: Any, groups: Sequence[object]) -> None:
    """A line between rows of different groups."""
    for y in range(1, len(groups)):
        if groups[y] != groups[y - 1]:
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
    """The curves of an experiment; those of the field's table, which has too many schemes for
    lines, as a heat map.
    """
    rows = [row for row in ROWS if row.experiment == finding.experiment.name]
    if not rows or any(arm not in finding.runs for row in rows for arm in row.arms.values()):
        return experiment_figure(finding)
    return accuracy_map(finding, rows)


def accuracy_map(finding: Finding, rows: list[Row]) -> Figure:
    """Rows are arms, columns are lengths, a cell is the mean accuracy in percent."""
    from matplotlib.colors import LinearSegmentedColormap

    arms = [(row, arm) for row in rows for arm in row.arms.values()]
    lengths = finding.experiment.lengths
    curves = finding.panels[finding.experiment.panels[0]].curves
    colours = LinearSegmentedColormap.from_list("accuracy", ("#ffffff", *SHADES))
    figure = new_figure(4.2 + 0.72 * len(lengths), 1.5 + 0.3 * len(arms))
    axes: Any = figure.subplots()
    for y, (_, arm) in enumerate(arms):
        for x, length in enumerate(lengths):
            if length in curves[arm]:
                _draw_accuracy(axes, x, y, curves[arm][length].mean, colours)
    _without_frame(axes)
    axes.set_xlim(-0.5, len(lengths) - 0.5)
    axes.set_ylim(len(arms) - 0.5, -0.5)
    axes.set_xticks(range(len(lengths)), list(map(str, lengths)))
    axes.set_yticks(range(len(arms)), [arm.label for _, arm in arms])
    axes.set_title("mean accuracy in percent", fontsize=9, color="#333333", pad=22)
    axes.set_xlabel(rows[0].task.length_is, fontsize=8.5)
    _separate(axes, [row for row, _ in arms])
    trained = sum(length <= (finding.trained_up_to or 0) for length in lengths)
    axes.axvline(trained - 0.5, color="#1b1b1b", lw=1.2)
    axes.text(
        trained - 0.5, -0.62, "trained up to here", **{**_centred(GREY, 7.5), "va": "bottom"}
    )
    return figure


def _draw_accuracy(axes: Any, x: int, y: int, accuracy: float, colours: Any) -> None:
    from matplotlib.patches import Rectangle

    cell = Rectangle((x - 0.48, y - 0.45), 0.96, 0.9, lw=0, facecolor=colours(accuracy))
    axes.add_patch(cell)
    text = f"{100 * accuracy:.0f}" if accuracy in (0, 1) else f"{100 * accuracy:.1f}"
    axes.text(x, y, text, **_centred("#ffffff" if accuracy > 0.6 else "#1b1b1b", 7.5))
