"""How attention logits become weights."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from taskhint.system.extras import need
from taskhint.system.settings import Family

if TYPE_CHECKING:
    from torch import Tensor

LOWEST_BELOW = 4.0


@dataclass(frozen=True)
class Normaliser(Family):
    """Derive from it, name a `kind`, and say what becomes of the logits."""

    family: ClassVar[str] = "normaliser"
    label: ClassVar[str] = "model.normaliser"

    def check_installed(self) -> None:
        """Refuse to build a model where a package is missing, with a UserError."""

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


@dataclass(frozen=True)
class Entmax15(Normaliser):
    """Sparse weights, (z/2 - τ)² where that is positive (Peters et al. 2019, α = 1.5)."""

    kind: ClassVar[str] = "entmax15"

    def check_installed(self) -> None:
        need("entmax", "model.normaliser=entmax15")

    def weights(self, logits: Tensor) -> Tensor:
        from entmax import entmax15

        # What is 2 below the largest logit has weight 0 already. The package subtracts squares of
        # its inputs, which are inexact for large numbers and undefined for -inf.
        lowest = logits.detach().amax(dim=-1, keepdim=True) - LOWEST_BELOW
        found: Tensor = entmax15(logits.maximum(lowest), dim=-1)
        return found
