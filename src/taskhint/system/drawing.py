"""What all figures share. Nothing is imported for them before one is drawn."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
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
    if "length" in x:
        _whole_numbers(panel)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)


def _whole_numbers(panel: Any) -> None:
    """No length is 2.5; an axis with ticks of its own keeps them."""
    from matplotlib.ticker import MaxNLocator

    locator = panel.xaxis.get_major_locator()
    if isinstance(locator, MaxNLocator):
        locator.set_params(integer=True)


def mark_training(panel: Any, longest: int | None, says: bool = True) -> None:
    """Shade the lengths that were trained; the words stand above the panel, clear of its lines."""
    if longest is None:
        return
    panel.axvspan(0, longest, color="#000000", alpha=0.05, lw=0, zorder=0.5)
    if says:
        panel.annotate(
            f"shaded: trained, up to {longest}",
            (0, 1),
            xycoords="axes fraction",
            xytext=(0, 2.5),
            textcoords="offset points",
            fontsize=7.5,
            color="#666666",
            annotation_clip=False,
        )
        panel.set_title(panel.get_title(), fontsize=10, pad=15)


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
