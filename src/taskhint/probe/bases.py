"""The two bases: the embedding's rows (encoder) and the main head's unembedding rows (decoder),
one per symbol; lengths of their vectors and angles between them.

Shapes: q symbols, D width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from taskhint.probe.probe import About, Looked, Probe, Shown
from taskhint.probe.shares import Floats
from taskhint.probe.traced import Subject
from taskhint.system.drawing import BLUE, GREEN, GREY, VERMILION, legend_below, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = 80
PAIR_COLOURS = {"within encoder": BLUE, "within decoder": VERMILION, "between": GREEN}
PAIR_LINES = {"within encoder": "-", "within decoder": "--", "between": ":"}


@dataclass(frozen=True)
class Cosines:
    """The cosines of the angles between two sets of vectors; 0 is a right angle.

    `count` pairs; `histogram` is their share in each bin between `edges`; `by_distance` is the
    mean over pairs of symbols that are 0, 1, 2, .. apart (from 1 on within a basis).
    """

    count: int
    mean_size: float  # of |cosine|
    rms: float
    largest_size: float
    edges: Floats
    histogram: Floats
    distances: tuple[int, ...]
    by_distance: Floats


@dataclass(frozen=True)
class Bases:
    """Norms by symbol, and cosines within each basis and between the two.

    Random directions have cosines of root mean square `random_rms`. All vectors of both bases
    together have `rms_of_all`, and cannot go below `least_rms_of_all` in so few dimensions
    (Welch's bound; 0 where all could be at right angles).
    """

    symbols: tuple[str, ...]
    width: int
    norms: dict[str, Floats]  # "encoder", "decoder"
    cosines: dict[str, Cosines]  # "within encoder", "within decoder", "between"
    random_rms: float
    rms_of_all: float
    least_rms_of_all: float


@dataclass(frozen=True)
class TwoBases(Probe):
    kind: ClassVar[str] = "bases"
    title: ClassVar[str] = "The two bases"
    caption: ClassVar[str] = (
        "Vectors at right angles have cosine 0. Curves that rise towards distance 1 say that "
        "neighbouring symbols have similar vectors, so their spikes are wider than one symbol."
    )

    def result(self, looked: Looked) -> Bases:
        return measure_bases(looked.subject)

    def draw(self, found: Bases, about: About) -> list[Shown]:  # noqa: ARG002
        return [Shown("bases", self.title, self.caption, bases_figure(found))]


def measure_bases(subject: Subject) -> Bases:
    """Of the symbols alone: rows of marks that never occur are still as they were drawn."""
    q = subject.task.vocab.symbols
    encoder, decoder = subject.encoder_basis[:q].double(), subject.decoder_basis[:q].double()
    width = encoder.shape[1]
    both = torch.cat([encoder, decoder])
    return Bases(
        symbols=tuple(subject.task.vocab.words(range(q))),
        width=width,
        norms={"encoder": encoder.norm(dim=1).numpy(), "decoder": decoder.norm(dim=1).numpy()},
        cosines={
            "within encoder": _cosines(_cosine_table(encoder, encoder), within=True),
            "within decoder": _cosines(_cosine_table(decoder, decoder), within=True),
            "between": _cosines(_cosine_table(encoder, decoder), within=False),
        },
        random_rms=1 / math.sqrt(width),
        rms_of_all=_cosines(_cosine_table(both, both), within=True).rms,
        least_rms_of_all=_welch(2 * q, width),
    )


def _cosine_table(first: Tensor, second: Tensor) -> Floats:
    """(q, q); a vector of length zero is at right angles to all."""
    unit = [
        x / x.norm(dim=1, keepdim=True).clamp_min(torch.finfo(x.dtype).tiny)
        for x in (first, second)
    ]
    return (unit[0] @ unit[1].T).clamp(-1, 1).numpy()


def _cosines(table: Floats, *, within: bool) -> Cosines:
    q = len(table)
    apart = np.abs(np.subtract.outer(np.arange(q), np.arange(q)))
    counted = np.triu(np.ones((q, q), dtype=bool), 1) if within else np.ones((q, q), dtype=bool)
    values, apart = table[counted], apart[counted]
    histogram, edges = np.histogram(values, bins=BINS, range=(-1, 1))
    distances = np.unique(apart)
    return Cosines(
        count=len(values),
        mean_size=float(np.abs(values).mean()),
        rms=float(np.sqrt((values**2).mean())),
        largest_size=float(np.abs(values).max()),
        edges=edges,
        histogram=histogram / len(values),
        distances=tuple(distances.tolist()),
        by_distance=np.array([values[apart == d].mean() for d in distances]),
    )


def _welch(vectors: int, width: int) -> float:
    """The smallest root mean square of the cosines between so many directions in so many
    dimensions.
    """
    return math.sqrt(max(0.0, (vectors / width - 1) / (vectors - 1)))


def bases_figure(bases: Bases) -> Figure:
    figure = new_figure(13.5, 4.1)
    norms, histogram, distance = figure.subplots(1, 3)
    _draw_norms(norms, bases)
    for pair, cosines in bases.cosines.items():
        style = {"color": PAIR_COLOURS[pair], "ls": PAIR_LINES[pair], "lw": 1.8}
        label = (
            f"{pair}: mean |cosine| {cosines.mean_size:.3f}, largest {cosines.largest_size:.2f}"
        )
        histogram.stairs(100 * cosines.histogram, cosines.edges, label=label, **style)
        distance.plot(cosines.distances, cosines.by_distance, **style)
    tidy(
        histogram,
        "How near to right angles",
        "cosine of the angle (0: right angle)",
        "pairs of symbols, %",
    )
    tidy(
        distance,
        "Are neighbouring symbols alike?",
        "distance between the two symbols",
        "mean cosine",
    )
    _mark_random(distance, bases)
    histogram.set_xlim(-0.8, 0.8)
    histogram.set_ylim(bottom=0)
    legend_below(figure, [histogram], 3)
    return figure


def _draw_norms(panel: Any, bases: Bases) -> None:
    first = int(bases.symbols[0])
    for basis, colour, marker in (("encoder", BLUE, "o"), ("decoder", VERMILION, "s")):
        values = bases.norms[basis]
        panel.plot(
            range(first, first + len(values)), values, marker, color=colour, ms=3, label=basis
        )
    panel.set_ylim(bottom=0)
    panel.legend(frameon=False, fontsize=9, loc="lower right")
    tidy(panel, "Length of each symbol's vector", "symbol", "norm")


def _mark_random(panel: Any, bases: Bases) -> None:
    for sign in (1, -1):
        panel.axhline(sign * bases.random_rms, color=GREY, lw=0.8, ls=(0, (2, 3)))
    place = panel.get_yaxis_transform()
    panel.text(
        0.99,
        bases.random_rms,
        "size for random directions",
        transform=place,
        fontsize=8,
        color=GREY,
        ha="right",
        va="bottom",
    )
