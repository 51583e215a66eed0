"""What all figures share. Nothing is imported for them before one is drawn."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from taskhint.system.extras import need

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart with any colour vision; markers differ too, for print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
MARKERS = "osD^vPX*"
GREY = "#8a8a8a"
LETTERS_PER_INCH = 11  # of a legend
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = COLOURS[:6]


def new_figure(width: float, height: float) -> Figure:
    need("matplotlib", "a figure")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def tidy(panel: Any, title: str = "", x: str = "", y: str = "") -> None:
    if title:
        panel.set_title(title, fontsize=10)
    panel.set_xlabel(x)
    panel.set_ylabel(y)
    panel.grid(alpha=0.25)
    panel.set_axisbelow(True)
    panel.tick_params(labelsize=8.5)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)


def mark_training(panel: Any, longest: int | None, says: bool = True) -> None:
    """Shade the lengths that were trained."""
    if longest is None:
        return
    panel.axvspan(0, longest, color="#000000", alpha=0.05, lw=0)
    if says:
        style: Any = {
            "fontsize": 7.5,
            "color": "#666666",
            "rotation": 90,
            "ha": "right",
            "va": "bottom",
            "zorder": 1.5,
        }
        style["bbox"] = {
            "facecolor": "#f2f2f2",
            "edgecolor": "none",
            "pad": 0.6,
            "alpha": 0.85,
        }  # bands stay behind it
        panel.text(
            longest, 0.03, "trained up to here", transform=panel.get_xaxis_transform(), **style
        )


def percent_axis(panel: Any) -> None:
    panel.set_ylim(-4, 104)
    panel.set_xlim(left=0)


def legend_below(figure: Figure, panels: Sequence[Any], columns: int) -> None:
    """One legend for all panels, an entry per label."""
    found: dict[str, Any] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    room = int(LETTERS_PER_INCH * figure.get_figwidth() / columns)
    figure.legend(
        list(found.values()),
        [textwrap.fill(label, room) for label in found],
        loc="outside lower center",
        ncols=min(columns, max(1, len(found))),
        frameon=False,
        fontsize=9,
    )


def as_png(figure: Figure) -> bytes:
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=130, metadata={"Software": None})
    return data.getvalue()


def as_svg(figure: Figure, box: Any = None) -> str:
    """An <svg> element to put into a page; of a part of the figure, if it is given a box."""
    import matplotlib

    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "taskhint", "svg.fonttype": "none"}):
        figure.savefig(
            text, format="svg", metadata={"Date": None}, bbox_inches=box, transparent=True
        )
    svg = text.getvalue()
    return svg[svg.index("<svg") :]


def as_panels(figure: Figure, label: str) -> str:
    """An <svg> element a panel, side by side where there is room and else one under another."""
    for axes in figure.axes:
        if len(axes.get_shared_y_axes().get_siblings(axes)) > 1:
            axes.tick_params(labelleft=True)  # its neighbour may be out of sight
    figure.draw_without_rendering()  # puts everything into its place,
    figure.set_layout_engine("none")  # where it stays
    parts: list[Any] = [*figure.texts, *figure.axes, *figure.legends]
    boxes = [_box(figure, part) for part in parts]
    shown = [part for part, box in zip(parts, boxes, strict=True) if box is not None]
    svgs = []
    for part, box in zip(parts, boxes, strict=True):
        if box is not None:
            for other in shown:
                other.set_visible(other is part)
            svgs.append(as_svg(figure, box))
    for part in shown:
        part.set_visible(True)
    return f'<div class="panels" role="img" aria-label="{escape(label)}">{"".join(svgs)}</div>'


def _box(figure: Figure, part: Any) -> Any:
    """Where a part of a figure stands, in inches; None where nothing is drawn."""
    if not (part.axison if hasattr(part, "axison") else True):
        return None
    return part.get_tightbbox().transformed(figure.dpi_scale_trans.inverted()).padded(0.05)
