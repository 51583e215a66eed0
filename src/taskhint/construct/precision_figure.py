"""How long an input the constructed model sorts, by the precision of its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taskhint.system.drawing import COLOURS, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def precision_figure(results: dict[str, Any]) -> Figure:
    """`results` as taskhint.construct.precision measures them."""
    figure = new_figure(7.2, 4.8)
    panel: Any = figure.subplots()
    strict = results["strict"]
    bits = [row["significand_bits"] for row in strict]
    reach = [min(bits), max(row["significand_bits"] for row in results["real"])]
    panel.plot(reach, [2.0**b for b in reach], color="#999999", lw=1, ls="--", label="2^b")
    panel.plot(
        bits,
        [row["longest_tried_and_sorted"] for row in strict],
        color=COLOURS[1],
        marker="o",
        ls="none",
        label="every addition rounded to b bits: the longest that sorts",
    )
    for norm, colour, shift in ((False, COLOURS[0], -0.3), (True, COLOURS[2], 0.3)):
        _draw_formats(
            panel, [row for row in results["real"] if row["layer_norm"] == norm], colour, shift
        )
    panel.set_yscale("log", base=2)
    panel.set_xlabel("significant bits b of a number")
    panel.set_ylabel("input length")
    panel.grid(alpha=0.25)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
    panel.legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def _draw_formats(panel: Any, rows: list[dict[str, Any]], colour: str, shift: float) -> None:
    name = "layer normalisation" if rows[0]["layer_norm"] else "no normalisation"
    places = [row["significand_bits"] + shift for row in rows]
    panel.plot(
        places,
        [row["longest_tried_and_sorted"] for row in rows],
        color=colour,
        marker="^",
        ls="none",
        label=f"torch's formats, {name}: sorted as far as tried",
    )
    panel.plot(
        places,
        [row["refused_beyond"] for row in rows],
        color=colour,
        marker="_",
        ms=14,
        ls="none",
        label=f"torch's formats, {name}: longer is refused",
    )
    if rows[0]["layer_norm"]:
        return
    for row in rows:
        place = (row["significand_bits"], row["refused_beyond"])
        panel.annotate(
            row["format"],
            place,
            xytext=(0, 8),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
