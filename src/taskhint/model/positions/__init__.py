"""Position schemes, one file per family. None of these files needs torch until a model runs."""

from __future__ import annotations

from taskhint.model.positions.absolute import Learned, Sinusoidal
from taskhint.model.positions.mirror import Mirror
from taskhint.model.positions.scheme import NoPositions, PositionHooks, Positions

__all__ = ["Learned", "Mirror", "NoPositions", "PositionHooks", "Positions", "Sinusoidal"]
