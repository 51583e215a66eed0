"""What theory predicts of a task, to stand beside measurements.

A prediction is a decoder's, trained on short inputs to the end: whether its answers stay right on
longer ones. C-RASP is the language of what decoders compute by counting; RASP-L that of short
programs that work at every length.
"""

from __future__ import annotations

from dataclasses import dataclass

YANG = "Yang and Chiang 2024"
HUANG = "Huang et al. 2025"
ZHOU = "Zhou et al. 2024"
OURS = "our reading"


@dataclass(frozen=True)
class Theory:
    """Whether a task carries over to longer inputs: without positions (C-RASP), and with absolute
    ones (C-RASP with local relations, RASP-L).

    `source` names the paper that says so, or says that it is our reading of their argument.
    """

    without_positions: bool
    with_positions: bool
    why: str
    source: str
