"""A figure on a page: a picture a panel, in the figure's own columns where the screen has room."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

from taskhint.system.drawing import as_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDE, HALF = 16.0, 8.5  # inches of panels side by side, on a wide and on a middling screen
PAD = 0.05


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
        axes.tick_params(labelleft=_has_ticks(axes.yaxis), labelbottom=_has_ticks(axes.xaxis))
    for _, axes in sorted(at.items()):
        place = axes.get_subplotspec()
        left = at.get((place.rowspan.start, place.colspan.start - 1))
        if left is not None and not axes.get_ylabel():
            axes.set_ylabel(left.get_ylabel(), fontsize=left.yaxis.label.get_fontsize())
    for _, axes in sorted(at.items(), reverse=True):
        place = axes.get_subplotspec()
        below = at.get((place.rowspan.start + 1, place.colspan.start))
        if below is not None and not axes.get_xlabel():
            axes.set_xlabel(below.get_xlabel(), fontsize=below.xaxis.label.get_fontsize())


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
