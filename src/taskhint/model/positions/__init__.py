"""Position schemes, one file per family. None of these files needs torch until a model runs."""

from __future__ import annotations

from taskhint.model.positions.absolute import Learned, Sinusoidal
from taskhint.model.positions.coupling import Abacus, Coupling
from taskhint.model.positions.drawn import LearnedOffset, Randomised
from taskhint.model.positions.learned_bias import Fire, KerpleLog, KerplePower, T5Buckets
from taskhint.model.positions.linear_bias import Alibi, Nape
from taskhint.model.positions.mirror import Mirror, Windows
from taskhint.model.positions.rotary import Rope
from taskhint.model.positions.scheme import NoPositions, PositionHooks, Positions

__all__ = [
    "Abacus",
    "Alibi",
    "Coupling",
    "Fire",
    "KerpleLog",
    "KerplePower",
    "Learned",
    "LearnedOffset",
    "Mirror",
    "Nape",
    "NoPositions",
    "PositionHooks",
    "Positions",
    "Randomised",
    "Rope",
    "Sinusoidal",
    "T5Buckets",
    "Windows",
]
