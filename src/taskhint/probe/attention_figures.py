"""Attention maps of one input, where the answer's attention goes by length, and how sharp it
stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from taskhint.probe.attention import AttentionByLength, AttentionMaps
from taskhint.probe.comparison import Comparison, Interval
from taskhint.probe.shares import Means
from taskhint.system.drawing import (
    BLUE,
    COLOURS,
    MARKERS,
    PURPLE,
    VERMILION,
    legend_below,
    mark_training,
    new_figure,
    tidy,
)

KIND_COLOURS = {"same symbol": BLUE, "digit just used": BLUE, "⊥": PURPLE, "rest": "#d9d9d9"}


def maps_figure(maps: AttentionMaps) -> Figure:
    """A panel per block and head; the delimiter's row and column are framed by lines."""
    blocks, heads = maps.weights.shape[:2]
    size = max(2.6, 0.17 * len(maps.tokens))
    figure = new_figure(size * heads + 0.9, size * blocks + 0.7)
    panels: Any = figure.subplots(blocks, heads, squeeze=False, sharex=True, sharey=True)
    for block in range(blocks):
        for head in range(heads):
            panel = panels[block][head]
            image = panel.imshow(
                maps.weights[block, head], cmap="Blues", vmin=0, vmax=1, interpolation="nearest"
            )
            panel.set_title(f"block {block + 1}, head {head + 1}", fontsize=9)
            _label_tokens(panel, maps)
    for row in panels:
        row[0].set_ylabel("from", fontsize=9)
    for panel in panels[-1]:
        panel.set_xlabel("to", fontsize=9)
    figure.colorbar(image, ax=panels, shrink=0.6, pad=0.01, label="attention weight")
    return figure


def _label_tokens(panel: Any, maps: AttentionMaps) -> None:
    places = range(len(maps.tokens))
    panel.set_xticks(places, maps.tokens, fontsize=6.5, rotation=90)
    panel.set_yticks(places, maps.tokens, fontsize=6.5)
    for draw in (panel.axhline, panel.axvline):
        draw(maps.inputs - 0.5, color=PURPLE, lw=0.8, ls=":")
        draw(maps.inputs + 0.5, color=PURPLE, lw=0.8, ls=":")


def shares_figure(curves: AttentionByLength) -> Figure:
    """A panel per block and head: stacked bars, one per length."""
    blocks, heads = next(iter(curves.shares.values())).mean.shape[:2]
    figure = new_figure(2.7 * heads + 0.6, 2.3 * blocks + 0.8)
    panels: Any = figure.subplots(blocks, heads, squeeze=False, sharex=True, sharey=True)
    for block in range(blocks):
        for head in range(heads):
            _stack(panels[block][head], curves, block, head)
            tidy(panels[block][head], f"block {block + 1}, head {head + 1}")
    for panel in panels[-1]:
        panel.set_xlabel("input length")
    for row in panels:
        row[0].set_ylabel("attention, %")
    legend_below(figure, panels.flatten(), len(curves.kinds))
    return figure


def _stack(panel: Any, curves: AttentionByLength, block: int, head: int) -> None:
    lengths = [str(length) for length in curves.shares]
    bottom = [0.0] * len(lengths)
    for column, kind in enumerate(curves.kinds):
        heights = [
            100 * float(means.mean[block, head, column]) for means in curves.shares.values()
        ]
        colour = KIND_COLOURS.get(kind, VERMILION)
        panel.bar(lengths, heights, 0.82, bottom, color=colour, label=kind, lw=0)
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    panel.set_ylim(0, 100)


def sharpness_figure(curves: AttentionByLength, trained_up_to: int | None) -> Figure:
    """The largest share on one symbol and the entropy, a line per block and head."""
    figure = new_figure(10, 4.4)
    panels: Any = figure.subplots(1, 2)
    for panel, values, title, y in (
        (
            panels[0],
            curves.largest,
            "The symbol that is looked at most",
            "its share of the attention, %",
        ),
        (
            panels[1],
            curves.entropy,
            "How spread out the weights are",
            "entropy, % of ln(keys in sight)",
        ),
    ):
        _draw_heads(panel, values)
        tidy(panel, title, "input length", y)
        mark_training(panel, trained_up_to)
        panel.set_ylim(0, 103)
        panel.set_xlim(left=0)
    legend_below(figure, panels, 4)
    return figure


def _draw_heads(panel: Any, values: Mapping[int, Means]) -> None:
    """Blocks differ in line style, heads in colour and marker."""
    blocks, heads = next(iter(values.values())).mean.shape
    for block in range(blocks):
        for head in range(heads):
            curve = {
                n: Interval(m.mean[block, head], m.half[block, head]) for n, m in values.items()
            }
            label = f"block {block + 1}, head {head + 1}"
            _draw_interval(
                panel,
                curve,
                head,
                label,
                ls=("-" if block == blocks - 1 else "--"),
                lw=1.0 + block,
            )


def _draw_interval(
    panel: Any, curve: Mapping[int, Interval], number: int, label: str, **style: Any
) -> None:
    colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
    lengths, points = list(curve), list(curve.values())
    panel.plot(
        lengths,
        [100 * p.mean for p in points],
        color=colour,
        marker=marker,
        ms=4.5,
        label=label,
        **style,
    )
    low, high = (
        [100 * (p.mean - p.half) for p in points],
        [100 * (p.mean + p.half) for p in points],
    )
    panel.fill_between(lengths, low, high, color=colour, alpha=0.15, lw=0)


def heads_comparison(comparison: Comparison) -> Figure:
    """For each kind of key the head that looks at it most: its share on that kind, and how sharp
    it is.
    """
    kinds = list(comparison.runs[0].heads)
    figure = new_figure(11.5, 3.4 * len(kinds) + 0.7)
    panels: Any = figure.subplots(len(kinds), 3, squeeze=False)
    for row, kind in zip(panels, kinds, strict=True):
        for number, run in enumerate(comparison.runs):
            head = run.heads[kind]
            for panel, curve in zip(row, (head.share, head.largest, head.entropy), strict=True):
                _draw_interval(panel, curve, number, run.name, lw=1.6)
        tidy(
            row[0],
            f"Attention on the {kind}\n(the head of the last block with most of it)",
            "input length",
            "share of its attention, %",
        )
        tidy(
            row[1],
            "The same head: the symbol\nthat it looks at most",
            "input length",
            "its share of the attention, %",
        )
        tidy(
            row[2],
            "The same head:\nhow spread out its weights are",
            "input length",
            "entropy, % of ln(keys in sight)",
        )
    for panel in panels.flatten():
        mark_training(panel, comparison.trained_up_to)
        panel.set_ylim(0, 103)
        panel.set_xlim(left=0)
    legend_below(figure, panels.flatten(), 4)
    return figure
