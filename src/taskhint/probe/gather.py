"""One pass over fresh sequences of each length, shared by every probe that counts over sequences.

Shapes: B examples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from taskhint.probe.shares import Floats
from taskhint.probe.view import Subject, View, views
from taskhint.system.progress import Progress

Rows = dict[str, Floats]
"""Named values of each sequence, (B, ...) each."""

Measure = Callable[[View], Rows]
"""What a probe keeps of a view."""

Gathered = dict[int, Rows]
"""The rows of all sequences, by input length."""


def gather(
    subject: Subject,
    lengths: Sequence[int],
    examples: int,
    measures: Sequence[Measure],
    progress: Progress | None = None,
) -> Gathered:
    """Trace each sequence once and let every measure look at it. Measures must not share names."""
    gathered: Gathered = {}
    done = 0
    for length in sorted(set(lengths)):
        gathered[length] = _gather(subject, length, examples, measures)
        done += length * examples
        if progress is not None:
            progress.advance_to(done)
    return gathered


@torch.no_grad()
def _gather(subject: Subject, length: int, examples: int, measures: Sequence[Measure]) -> Rows:
    parts: dict[str, list[Floats]] = {}
    for view in views(subject, length, examples):
        for measure in measures:
            for name, values in measure(view).items():
                parts.setdefault(name, []).append(values)
    return {name: np.concatenate(values) for name, values in parts.items()}
