"""How attention logits become weights."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from taskhint.system.settings import Family

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Normaliser(Family):
    """Derive from it, name a `kind`, and say what becomes of the logits."""

    family: ClassVar[str] = "normaliser"
    label: ClassVar[str] = "model.normaliser"

    @abstractmethod
    def weights(self, logits: Tensor) -> Tensor:
        """(..., T) logits -> (..., T) weights that add up to 1; a logit of -inf must
        get weight 0.
        """


@dataclass(frozen=True)
class Softmax(Normaliser):
    kind: ClassVar[str] = "softmax"

    def weights(self, logits: Tensor) -> Tensor:
        return logits.softmax(dim=-1)
