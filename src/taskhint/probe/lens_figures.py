"""The paper's charts: one position's projections on both bases, before and after each MLP."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from taskhint.probe.lens import PositionProjection, Projections
from taskhint.system.drawing import BLUE, GREEN, GREY, PURPLE, VERMILION, new_figure, tidy

ROLE_STYLE = {
    "token": (BLUE, "o"),
    "successor": (VERMILION, "s"),
    "right next": (VERMILION, "s"),
    "minimum": (GREEN, "^"),
    "⊥": (PURPLE, "D"),
}
PRESENT_STYLE: dict[str, Any] = {"marker": "^", "ls": "", "color": "#000000", "ms": 4.5}
PLACES = {"input": "in the input", "answer": "in the answer", "delimiter": "the end of the input"}


def projection_figure(projections: Projections, position: PositionProjection) -> Figure:
    """A row per block; encoder basis before and after the MLP, then the decoder basis before and
    after it.
    """
    blocks = len(projections.stages) // 2
    figure = new_figure(14, 2.5 * blocks + 1.2)
    panels: Any = figure.subplots(blocks, 4, squeeze=False, sharex=True)
    for stage, stage_name in enumerate(projections.stages):
        for basis, basis_name in enumerate(projections.bases):
            panel = panels[stage // 2][2 * basis + stage % 2]
            _draw(panel, projections, position, position.values[stage, basis])
            tidy(panel, f"{basis_name} basis · {stage_name}")
    for panel in panels[-1]:
        panel.set_xlabel("symbol")
    for row in panels:
        row[0].set_ylabel("dot product")
    _title(figure, projections, position)
    return figure


def _draw(panel: Any, projections: Projections, position: PositionProjection, values: Any) -> None:
    places = range(len(values))
    panel.fill_between(places, values, step="mid", color=GREY, alpha=0.55, lw=0)
    panel.axhline(0, color="#444444", lw=0.6)
    present = [projections.symbols.index(symbol) for symbol in projections.inputs]
    panel.plot(
        present,
        [0] * len(present),
        transform=panel.get_xaxis_transform(),
        clip_on=False,
        **PRESENT_STYLE,
    )
    for role, symbol in _marked(position).items():
        colour, marker = ROLE_STYLE[role]
        at = projections.symbols.index(symbol)
        panel.vlines(at, 0, values[at], color=colour, lw=1.8)
        panel.plot([at], [values[at]], marker, color=colour, ms=6, mec="white", mew=0.7)
    _tick_symbols(panel, projections)


def _marked(position: PositionProjection) -> dict[str, str]:
    """Roles and their symbols; ⊥ marks itself."""
    return {**position.roles, **({"⊥": position.token} if position.place == "delimiter" else {})}


def _tick_symbols(panel: Any, projections: Projections) -> None:
    count = len(projections.symbols)
    every = max(1, (count - 1) // 5)
    ticks = [*range(every - 1 if count > 20 else 0, count - 1, every)]
    ticks = [tick for tick in ticks if tick < count - 1 - every // 3] + [count - 1]
    panel.set_xticks(ticks, [projections.symbols[tick] for tick in ticks])


def _title(figure: Figure, projections: Projections, position: PositionProjection) -> None:
    sequence = " ".join(
        f"[{word}]" if place == position.position else word
        for place, word in enumerate(projections.sequence[:40])
    )
    ending = " …" if len(projections.sequence) > 40 else ""
    where = PLACES[position.place]
    figure.suptitle(
        f"Token {position.token} at position {position.position}, {where}:   {sequence}{ending}",
        fontsize=12,
    )
    from matplotlib.lines import Line2D

    handles = []
    for role, symbol in _marked(position).items():
        colour, marker = ROLE_STYLE[role]
        label = role if role == symbol else f"{role}: {symbol}"
        handles.append(Line2D([], [], color=colour, marker=marker, lw=1.8, label=label))
    handles.append(Line2D([], [], label="every input symbol (on the axis)", **PRESENT_STYLE))
    figure.legend(
        handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=10
    )
