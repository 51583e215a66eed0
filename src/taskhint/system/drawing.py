"""What all figures share, and how one stands on a page: a picture a panel, in the figure's own
columns where the screen has room. Nothing is imported for them before one is drawn.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
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
WIDE, HALF = 16.0, 8.5  # inches of panels side by side, on a wide and on a middling screen
PAD = 0.05


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


def as_panels(figure: Figure, label: str) -> str:
    """An <svg> element a panel; titles of the whole figure above them and legends below."""
    figure.draw_without_rendering()  # puts everything into its place,
    figure.set_layout_engine("none")  # where it stays
    panels = [axes for axes in figure.axes if axes.axison and axes.get_visible()]
    beside = _bars_beside(panels)
    bars = {bar for own in beside.values() for bar in own}
    rows = [axes for axes in panels if axes not in bars and axes.get_subplotspec() is None]
    cells = [axes for axes in panels if axes not in bars and axes not in rows]
    _label_all(cells)
    parts = [*panels, *figure.texts, *figure.legends]
    body = "".join(f"<p>{escape(text.get_text())}</p>" for text in figure.texts)
    for axes, box in _boxes(figure, cells, beside).items():
        with _only([axes, *beside[axes]], parts):
            body += as_svg(figure, box)
    for part in (*rows, *figure.legends):
        with _only([part], parts):
            body += f'<div class="row">{as_svg(figure, _tight(figure, part).padded(PAD))}</div>'
    return (
        f'<div class="panels" style="{_columns(figure, cells)}" role="img" '
        f'aria-label="{escape(label)}">{body}</div>'
    )


@contextmanager
def _only(wanted: Iterable[Any], parts: Iterable[Any]) -> Iterator[None]:
    """Some parts of a figure are seen and the others not."""
    for part in parts:
        part.set_visible(part in wanted)
    yield
    for part in parts:
        part.set_visible(True)


def _bars_beside(panels: list[Any]) -> dict[Any, list[Any]]:
    """The colour bars of each panel that stand beside it; others are for several panels."""
    found: dict[Any, list[Any]] = {axes: [] for axes in panels}
    for axes in panels:
        for drawn in (*axes.images, *axes.collections):
            bar = drawn.colorbar.ax if drawn.colorbar else None
            if bar in panels and _same_height(bar, axes):
                found[axes].append(bar)
    return found


def _same_height(bar: Any, axes: Any) -> bool:
    """Whether a colour bar stands beside one panel alone, and not below or along several."""
    one, other = bar.get_position(), axes.get_position()
    return bool(one.y0 > other.y0 - 0.01 and one.y1 < other.y1 + 0.01)


def _label_all(cells: list[Any]) -> None:
    """Words and numbers that a panel shares with a neighbour are its own too."""
    at = {}
    for axes in cells:
        place = axes.get_subplotspec()
        at[place.rowspan.start, place.colspan.start] = axes
        below = axes.xaxis.get_ticks_position() != "top" and _has_ticks(axes.xaxis)
        axes.tick_params(labelleft=_has_ticks(axes.yaxis), labelbottom=below)
    for _, axes in sorted(at.items()):
        place = axes.get_subplotspec()
        left = at.get((place.rowspan.start, place.colspan.start - 1))
        if left is not None and not axes.get_ylabel():
            axes.set_ylabel(left.get_ylabel(), fontsize=left.yaxis.label.get_fontsize())
    for _, axes in sorted(at.items(), reverse=True):
        place = axes.get_subplotspec()
        under = at.get((place.rowspan.start + 1, place.colspan.start))
        if under is not None and not axes.get_xlabel():
            axes.set_xlabel(under.get_xlabel(), fontsize=under.xaxis.label.get_fontsize())


def _has_ticks(axis: Any) -> bool:
    return bool(len(axis.get_majorticklocs()))


def _boxes(figure: Figure, cells: list[Any], beside: dict[Any, list[Any]]) -> dict[Any, Any]:
    """Where each panel stands, in inches. All have the same margins, so that they stay in line."""
    from matplotlib.transforms import Bbox

    inner, outer = {}, {}
    for axes in cells:
        inner[axes] = _inches(figure, axes.get_window_extent())
        outer[axes] = Bbox.union([_tight(figure, part) for part in (axes, *beside[axes])])
    left = max((inner[axes].x0 - outer[axes].x0 for axes in cells), default=0.0)
    right = max((outer[axes].x1 - inner[axes].x1 for axes in cells), default=0.0)
    below = max((inner[axes].y0 - outer[axes].y0 for axes in cells), default=0.0)
    above = max((outer[axes].y1 - inner[axes].y1 for axes in cells), default=0.0)
    return {
        axes: Bbox.from_extents(
            box.x0 - left, box.y0 - below, box.x1 + right, box.y1 + above
        ).padded(PAD)
        for axes, box in inner.items()
    }


def _tight(figure: Figure, part: Any) -> Any:
    return _inches(figure, part.get_tightbbox())


def _inches(figure: Figure, box: Any) -> Any:
    return box.transformed(figure.dpi_scale_trans.inverted())


def _columns(figure: Figure, cells: list[Any]) -> str:
    """How many panels stand side by side: a divisor of the figure's columns keeps its rows."""
    count = max((axes.get_subplotspec().colspan.stop for axes in cells), default=1)
    each = figure.get_figwidth() / count
    fitting = [
        max(n for n in range(1, count + 1) if count % n == 0 and (n == 1 or n * each <= room))
        for room in (WIDE, HALF)
    ]
    return f"--wide: {fitting[0]}; --half: {fitting[1]}"
