"""Attention maps: every head's weights on one input.

Shapes: L blocks, H heads, T tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from taskhint.probe.probe import About, Looked, Probe, Shown
from taskhint.probe.shares import Floats
from taskhint.probe.traced import Subject, trace_of_prompt
from taskhint.system.drawing import PURPLE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class AttentionMaps:
    """The attention weights of one sequence: (L, H, T, T), from the token of the row to that of
    the column.
    """

    tokens: tuple[str, ...]
    inputs: int
    weights: Floats


def attention_maps(subject: Subject, prompt: list[int]) -> AttentionMaps:
    traced = trace_of_prompt(subject, prompt)
    names = (f"blocks.{block}.attention.weights" for block in range(subject.depth))
    weights = torch.stack([traced.trace[name].float()[0] for name in names])
    tokens = tuple(subject.task.vocab.words(traced.tokens[0].tolist()))
    return AttentionMaps(tokens, traced.inputs, weights.double().numpy())


@dataclass(frozen=True)
class Maps(Probe):
    kind: ClassVar[str] = "maps"
    title: ClassVar[str] = "Attention maps"
    caption: ClassVar[str] = (
        "Every row is a token, every column a token that it looks at; dotted lines frame ⊥."
    )

    def result(self, looked: Looked) -> AttentionMaps:
        return attention_maps(looked.subject, looked.prompt)

    def draw(self, found: AttentionMaps, about: About) -> list[Shown]:  # noqa: ARG002
        return [Shown("attention-maps", self.title, self.caption, maps_figure(found))]


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
            panel.set_title(f"block {block}, head {head}", fontsize=9)
            _label_tokens(panel, maps)
    for row in panels:
        row[0].set_ylabel("from", fontsize=9)
    for panel in panels[-1]:
        panel.set_xlabel("to", fontsize=9)
    bar: Any = {"location": "bottom", "shrink": 0.4, "aspect": 30, "pad": 0.02}
    figure.colorbar(image, ax=panels, label="attention weight", **bar)
    return figure


def _label_tokens(panel: Any, maps: AttentionMaps) -> None:
    places = range(len(maps.tokens))
    panel.set_xticks(places, maps.tokens, fontsize=6.5, rotation=90)
    panel.set_yticks(places, maps.tokens, fontsize=6.5)
    for draw in (panel.axhline, panel.axvline):
        draw(maps.inputs - 0.5, color=PURPLE, lw=0.8, ls=":")
        draw(maps.inputs + 0.5, color=PURPLE, lw=0.8, ls=":")
