"""Where the answer appears: how often the right next symbol is already the largest, by stage.

Shapes: B examples.

A stage is a place in the stream: after the attention of a block (before its MLP) or after the
block's MLP.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from taskhint.probe.probe import About, Looked, Probe, Shown
from taskhint.probe.shares import Share, draw_shares, share_of
from taskhint.probe.traced import Rows, RowsByLength, Subject, Traced, collect, stand_out
from taskhint.system.drawing import legend_below, mark_training, new_figure, percent_axis, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def stages(depth: int) -> dict[str, str]:
    """The key of each stage in probe.json, which counts blocks from 1, and its name in the trace;
    in the order of the forward pass.
    """
    names: dict[str, str] = {}
    for block in range(depth):
        names[f"block {block + 1}, before MLP"] = f"blocks.{block}.after_attention"
        names[f"block {block + 1}, after MLP"] = f"blocks.{block}.after_mlp"
    return names


def stage_label(number: int) -> str:
    """What figures call a stage: blocks count from 0, as everywhere but in the keys."""
    return f"block {number // 2}, {'after' if number % 2 else 'before'} MLP"


@dataclass(frozen=True)
class StageCurves:
    """For each stage, how often the right next symbol has the largest projection on the decoder
    basis, by length.

    `start` counts the step from the end of the prompt (⊥) to the first answer symbol, `answer` all
    later ones. Steps to a mark, such as NONE, are not asked: only symbols compete.
    """

    start: dict[str, dict[int, Share]]
    answer: dict[str, dict[int, Share]]


@dataclass(frozen=True)
class Stages(Probe):
    kind: ClassVar[str] = "stages"
    title: ClassVar[str] = "Where the answer appears"
    caption: ClassVar[str] = (
        "How often the right next symbol already has the largest dot product with the decoder "
        "basis, at each place of the stream: between which two lines the model finds its answer, "
        "and how that fares with length."
    )

    def rows(self, traced: Traced) -> Rows:
        return stage_rows(traced)

    def result(self, looked: Looked) -> StageCurves:
        return stage_curves(looked.rows)

    def draw(self, found: StageCurves, about: About) -> list[Shown]:
        figure = stages_figure(found, about.trained_up_to)
        return [Shown("stages", self.title, self.caption, figure)]


def answer_by_stage(subject: Subject, lengths: Sequence[int], examples: int) -> StageCurves:
    """Where in the stream the answer appears."""
    (rows,) = collect(subject, lengths, examples, [stage_rows])
    return stage_curves(rows)


def stage_rows(traced: Traced) -> Rows:
    """(B, 2, 2) of each sequence at each stage: held and asked, at ⊥ and at later positions."""
    wanted = traced.following[:, traced.predicting]
    asked = wanted < traced.symbols
    rows: Rows = {}
    for name, stream in stages(traced.subject.depth).items():
        right = stand_out(traced.on_decoder(stream, traced.predicting), wanted)
        counts = torch.stack([right, asked], dim=1).long()
        parts = [counts[:, :, 0], counts[:, :, 1:].sum(dim=2)]
        rows[name] = torch.stack(parts, dim=1).numpy()
    return rows


def stage_curves(by_length: RowsByLength) -> StageCurves:
    names = dict.fromkeys(name for rows in by_length.values() for name in rows)
    start, answer = (
        {
            name: {n: share_of(*rows[name][:, part].T) for n, rows in by_length.items()}
            for name in names
        }
        for part in (0, 1)
    )
    return StageCurves(start, answer)


def stages_figure(curves: StageCurves, trained_up_to: int | None) -> Figure:
    """How often the right next symbol is already the largest, a line per stage."""
    figure = new_figure(9.5, 4.3)
    panels: Any = figure.subplots(1, 2, sharey=True)
    titles = ("At ⊥: the first answer symbol", "In the answer: every later symbol")
    for panel, shares, title in zip(panels, (curves.start, curves.answer), titles, strict=True):
        for number, by_length in enumerate(shares.values()):
            line = "-" if number % 2 else "--"
            draw_shares(panel, by_length, number, stage_label(number), ls=line)
        tidy(panel, title, "input length")
        mark_training(panel, trained_up_to)
        percent_axis(panel)
    panels[0].set_ylabel("right next symbol is the largest, %")
    legend_below(figure, panels, 4)
    return figure
