"""The two bases: the embedding's rows (encoder) and the main head's unembedding rows (decoder),
one per symbol.

Shapes: q symbols, D width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from taskhint.probe.shares import Floats
from taskhint.probe.view import Subject

BINS = 80


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
