"""Where the answer's attention goes, and how sharp it stays as inputs grow.

Shapes: B examples, L blocks, H heads, A answer positions (the queries), T tokens, G kinds of keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from taskhint.data.dataset import fresh_examples
from taskhint.probe.probe import About, Comparison, Looked, Probe, Shown
from taskhint.probe.shares import Means, draw_means, means_of
from taskhint.probe.traced import Rows, RowsByLength, Subject, Traced, collect
from taskhint.system.drawing import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    legend_below,
    mark_training,
    new_figure,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REST = "rest"
KIND_COLOURS = {"same symbol": BLUE, "digit just used": BLUE, "⊥": PURPLE, REST: "#d9d9d9"}
OTHER_COLOURS = (VERMILION, GREEN, ORANGE, SKY)


@dataclass(frozen=True)
class AttentionByLength:
    """Means over the answer positions of each sequence, then over sequences, by input length.

    shares: (L, H, G) how much of the attention goes to keys of each kind. largest: (L, H) the
    largest share that one symbol has, all of its copies together. entropy: (L, H) the weights'
    entropy over ln(keys in sight): 0 for one key, 1 for all keys alike.
    """

    kinds: tuple[str, ...]
    shares: dict[int, Means]
    largest: dict[int, Means]
    entropy: dict[int, Means]


@dataclass(frozen=True)
class HeadCurves:
    """One head by length. It was chosen at the shortest length, as the one of the last block that
    looks most at `kind`.

    `share` is its attention on that kind, `largest` the largest share on any one symbol, `entropy`
    over ln(keys in sight).
    """

    kind: str
    block: int
    head: int
    share: dict[int, Means]
    largest: dict[int, Means]
    entropy: dict[int, Means]


@dataclass(frozen=True)
class Attention(Probe):
    kind: ClassVar[str] = "attention"

    def rows(self, traced: Traced) -> Rows:
        return attention_rows(traced)

    def result(self, looked: Looked) -> AttentionByLength:
        return attention_curves(looked.subject, looked.rows)

    def draw(self, found: AttentionByLength, about: About) -> list[Shown]:
        if not found.shares:
            return []
        return [
            Shown(
                "attention-shares",
                "Where the answer's attention goes",
                "Where the attention of the answer's tokens goes. Growing grey is attention that "
                "longer inputs dilute over keys that do not matter.",
                shares_figure(found),
            ),
            Shown(
                "sharpness",
                "How sharp attention stays",
                "Left: how much of a head's attention its favourite symbol gets (higher is "
                "sharper). Right: entropy relative to looking at all keys alike (lower is "
                "sharper).",
                sharpness_figure(found, about.trained_up_to),
            ),
        ]

    def excerpt(self, found: AttentionByLength) -> dict[str, Any]:
        kinds = [kind for kind in found.kinds if found.shares and kind not in ("⊥", REST)]
        return {"heads": {kind: follow_head(found, kind) for kind in kinds}}

    def draw_compared(self, comparison: Comparison) -> list[Shown]:
        if not all(run.parts["heads"] for run in comparison.runs):
            return []
        caption = (
            "One head of each run, chosen at the shortest length and followed from there: the one "
            "of the last block that looks most at the keys that matter. Where its line falls, "
            "attention is diluted."
        )
        figure = heads_comparison(comparison)
        return [Shown("compared-heads", "Attention compared", caption, figure)]


def attention_by_length(
    subject: Subject, lengths: Sequence[int], examples: int
) -> AttentionByLength:
    (rows,) = collect(subject, lengths, examples, [attention_rows])
    return attention_curves(subject, rows)


def attention_rows(traced: Traced) -> Rows:
    """Means over the answer positions of each sequence; nothing where there is none."""
    if traced.answer.start == traced.answer.stop:
        return {}
    masks = traced.subject.task.key_kinds(traced.sequences.numpy(), traced.inputs)
    kinds = [torch.from_numpy(np.array(mask)) for mask in masks.values()]
    blocks = [_in_block(traced, block, kinds) for block in range(traced.subject.depth)]
    parts = [torch.stack(part, dim=1).double().numpy() for part in zip(*blocks, strict=True)]
    return dict(zip(("shares", "largest", "entropy"), parts, strict=True))


def _in_block(traced: Traced, block: int, kinds: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """(B, H, G) shares, (B, H) largest, (B, H) entropy."""
    weights = traced.trace[f"blocks.{block}.attention.weights"].float()[:, :, traced.answer]
    named = [(weights * mask[:, None]).sum(dim=3).mean(dim=2) for mask in kinds]
    shares = torch.stack([*named, 1 - torch.stack(named).sum(dim=0)], dim=2)
    return (
        shares,
        _largest_symbol(traced, weights).mean(dim=2),
        _relative_entropy(traced, weights).mean(dim=2),
    )


def _largest_symbol(traced: Traced, weights: Tensor) -> Tensor:
    """(B, H, A) the largest sum over the copies of one token."""
    same = (traced.tokens[:, :, None] == traced.tokens[:, None, :]).to(weights.dtype)
    return (weights @ same[:, None]).amax(dim=3)


def _relative_entropy(traced: Traced, weights: Tensor) -> Tensor:
    """(B, H, A)"""
    keys_in_sight = torch.arange(traced.answer.start + 1, traced.answer.stop + 1)
    entropy = torch.special.entr(weights).sum(dim=3)
    return entropy / keys_in_sight.log().to(weights.dtype)


def attention_curves(subject: Subject, by_length: RowsByLength) -> AttentionByLength:
    """Lengths without an answer position (sorting one symbol) are left out."""
    measured = {n: rows for n, rows in by_length.items() if rows}
    shares, largest, entropy = (
        {n: means_of(rows[name]) for n, rows in measured.items()}
        for name in ("shares", "largest", "entropy")
    )
    example = fresh_examples(subject.task, subject.seed, min(by_length), 0, 1)
    sequence = example.tokens[:, : example.sizes[0]]
    kinds = (*subject.task.key_kinds(sequence, int(example.inputs[0])), REST)
    return AttentionByLength(kinds, shares, largest, entropy)


def sharpest_head(rows: Rows) -> float:
    """Of the heads of the last block the largest share of attention on one symbol, all of its
    copies together: means over answer positions, then over sequences.
    """
    return float(rows["largest"][:, -1].mean(axis=0).max())


def strongest_head(curves: AttentionByLength, kind: str) -> tuple[int, int]:
    """Block and head with the largest share on a kind of key in the last block, at the shortest
    length measured.
    """
    shortest = min(curves.shares)
    last = curves.shares[shortest].mean[-1, :, curves.kinds.index(kind)]
    return curves.shares[shortest].mean.shape[0] - 1, int(np.argmax(last))


def follow_head(curves: AttentionByLength, kind: str) -> HeadCurves:
    block, head = strongest_head(curves, kind)
    at = (block, head)
    return HeadCurves(
        kind=kind,
        block=block,
        head=head,
        share=_at(curves.shares, (*at, curves.kinds.index(kind))),
        largest=_at(curves.largest, at),
        entropy=_at(curves.entropy, at),
    )


def _at(values: Mapping[int, Means], place: tuple[int, ...]) -> dict[int, Means]:
    return {n: Means(means.mean[place], means.half[place]) for n, means in values.items()}


def shares_figure(curves: AttentionByLength) -> Figure:
    """A panel per block and head: stacked bars, one per length."""
    blocks, heads = next(iter(curves.shares.values())).mean.shape[:2]
    figure = new_figure(2.7 * heads + 0.6, 2.3 * blocks + 0.8)
    panels: Any = figure.subplots(blocks, heads, squeeze=False, sharex=True, sharey=True)
    for block in range(blocks):
        for head in range(heads):
            _stack(panels[block][head], curves, block, head)
            tidy(panels[block][head], f"block {block}, head {head}")
    for panel in panels[-1]:
        panel.set_xlabel("input length")
    for row in panels:
        row[0].set_ylabel("attention, %")
    legend_below(figure, panels.flatten(), len(curves.kinds))
    return figure


def _stack(panel: Any, curves: AttentionByLength, block: int, head: int) -> None:
    lengths = [str(length) for length in curves.shares]
    bottom = [0.0] * len(lengths)
    others = [kind for kind in curves.kinds if kind not in KIND_COLOURS]
    colours = KIND_COLOURS | {
        kind: OTHER_COLOURS[k % len(OTHER_COLOURS)] for k, kind in enumerate(others)
    }
    for column, kind in enumerate(curves.kinds):
        heights = [
            100 * float(means.mean[block, head, column]) for means in curves.shares.values()
        ]
        panel.bar(lengths, heights, 0.82, bottom, color=colours[kind], label=kind, lw=0)
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    panel.set_ylim(0, 100)


FAVOURITE = "its share of the attention, %"
SPREAD = "entropy, % of ln(keys in sight)"


def sharpness_figure(curves: AttentionByLength, trained_up_to: int | None) -> Figure:
    """The largest share on one symbol and the entropy, a line per block and head."""
    figure = new_figure(10, 4.4)
    panels: Any = figure.subplots(1, 2)
    for panel, values in zip(panels, (curves.largest, curves.entropy), strict=True):
        _draw_heads(panel, values)
    tidy(panels[0], "The symbol that is looked at most", "input length", FAVOURITE)
    tidy(panels[1], "How spread out the weights are", "input length", SPREAD)
    _finish(figure, panels, trained_up_to)
    return figure


def _draw_heads(panel: Any, values: Mapping[int, Means]) -> None:
    """Blocks differ in line style, heads in colour and marker."""
    blocks, heads = next(iter(values.values())).mean.shape
    for block in range(blocks):
        look: dict[str, Any] = {"ls": "-" if block == blocks - 1 else "--", "lw": 1.0 + block}
        for head in range(heads):
            label = f"block {block}, head {head}"
            draw_means(panel, _at(values, (block, head)), head, label, scale=100, **look)


def heads_comparison(comparison: Comparison) -> Figure:
    """For each kind of key the head that looks at it most: its share on that kind, and how sharp
    it is.
    """
    kinds = list(comparison.runs[0].parts["heads"])
    figure = new_figure(11.5, 3.4 * len(kinds) + 0.7)
    panels: Any = figure.subplots(len(kinds), 3, squeeze=False)
    for row, kind in zip(panels, kinds, strict=True):
        for number, run in enumerate(comparison.runs):
            head: HeadCurves = run.parts["heads"][kind]
            for panel, curve in zip(row, (head.share, head.largest, head.entropy), strict=True):
                draw_means(panel, curve, number, run.about.name, scale=100)
        titles = (
            f"Attention on the {kind}\n(the head of the last block with most of it)",
            "The same head: the symbol\nthat it looks at most",
            "The same head:\nhow spread out its weights are",
        )
        labels = ("share of its attention, %", FAVOURITE, SPREAD)
        for panel, title, label in zip(row, titles, labels, strict=True):
            tidy(panel, title, "input length", label)
    _finish(figure, panels.flatten(), comparison.trained_up_to)
    return figure


def _finish(figure: Figure, panels: Sequence[Any], trained_up_to: int | None) -> None:
    for panel in panels:
        mark_training(panel, trained_up_to)
        panel.set_ylim(0, 103)
        panel.set_xlim(left=0)
    legend_below(figure, panels, 4)
