"""How attention logits become weights: a temperature scales them with length, and a normaliser,
usually softmax, turns them into shares.

Shapes: M queries, H heads, D width.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from taskhint.model.weights import Weight
from taskhint.system.extras import need
from taskhint.system.settings import Family, setting

if TYPE_CHECKING:
    from torch import Tensor

    from taskhint.model.config import ModelConfig
    from taskhint.model.places import Places

LOWEST_BELOW = 4.0  # the largest logit: all that is 2 below it has weight 0 under entmax


class TemperatureHook:
    def factor(self, places: Places) -> Tensor | None:  # noqa: ARG002
        """(M,) or (M, H) what each query's logits are multiplied with, beside 1/√(head width);
        None for 1.
        """
        return None


@dataclass(frozen=True)
class Temperature(Family, TemperatureHook):
    """A factor on attention logits. Derive from it, name a `kind`, override `factor`.

    One with learned weights declares them in `weights`, of which every block has its own, and
    returns from `bind` an object that has `factor` and holds them.
    """

    family: ClassVar[str] = "temperature"
    label: ClassVar[str] = "model.temperature"
    reads_sequence: ClassVar[bool] = (
        False  # whether it looks at places.sequence: answers must then be judged whole
    )
    reads_stream: ClassVar[bool] = (
        False  # whether it looks at places.stream, the vectors that queries are made of
    )

    def check(self, model: ModelConfig) -> None:
        """Refuse a model that the temperature cannot serve, with a UserError."""

    def weights(self, model: ModelConfig) -> dict[str, Weight]:  # noqa: ARG002
        return {}

    def bind(self, model: ModelConfig, weights: Mapping[str, Tensor]) -> TemperatureHook:  # noqa: ARG002
        return self


@dataclass(frozen=True)
class Constant(Temperature):
    """Logits as they are, the usual transformer."""

    kind: ClassVar[str] = "constant"


@dataclass(frozen=True)
class Fixed(Temperature):
    """The same factor for every query, in training and after it: as sharp as one likes."""

    kind: ClassVar[str] = "fixed"

    times: float = setting(1.25, above=0, at_most=1000)

    def factor(self, places: Places) -> Tensor:
        import torch

        return torch.full_like(places.index, self.times, dtype=torch.get_default_dtype())


@dataclass(frozen=True)
class LogVisible(Temperature):
    """The paper's tempered softmax, β·ln n with one learned β per block; n counts the keys that a
    query sees.
    """

    kind: ClassVar[str] = "log-visible"

    initial_beta: float = 0.4

    def weights(self, model: ModelConfig) -> dict[str, Weight]:  # noqa: ARG002
        return {"beta": Weight(mean=self.initial_beta)}

    def bind(self, model: ModelConfig, weights: Mapping[str, Tensor]) -> TemperatureHook:  # noqa: ARG002
        return LogarithmicHook(self, weights["beta"])

    def counted(self, places: Places) -> Tensor:
        """(M,) the n of ln n."""
        return places.index + 1


@dataclass(frozen=True)
class LogInput(LogVisible):
    """n counts the symbols before ⊥."""

    kind: ClassVar[str] = "log-input"

    def counted(self, places: Places) -> Tensor:
        return places.inputs


@dataclass(frozen=True)
class LogSequence(LogVisible):
    """n counts prompt and answer together."""

    kind: ClassVar[str] = "log-sequence"
    reads_sequence: ClassVar[bool] = True

    def counted(self, places: Places) -> Tensor:
        return places.sequence


class LogarithmicHook(TemperatureHook):
    def __init__(self, settings: LogVisible, beta: Tensor) -> None:
        self.settings, self.beta = settings, beta

    def factor(self, places: Places) -> Tensor:
        return self.beta * self.settings.counted(places).to(self.beta.dtype).log()


@dataclass(frozen=True)
class SSMax(Temperature):
    """Scalable softmax, s·ln n with a learned s for each head of each block (Nakanishi 2025)."""

    kind: ClassVar[str] = "ssmax"

    initial_scale: float = 0.43

    def weights(self, model: ModelConfig) -> dict[str, Weight]:
        return {"scale": Weight((model.heads,), mean=self.initial_scale)}

    def bind(self, model: ModelConfig, weights: Mapping[str, Tensor]) -> TemperatureHook:  # noqa: ARG002
        return PerHeadHook(weights["scale"])


class PerHeadHook(TemperatureHook):
    def __init__(self, scale: Tensor) -> None:
        self.scale = scale

    def factor(self, places: Places) -> Tensor:
        return (places.index + 1).to(self.scale.dtype).log()[:, None] * self.scale


@dataclass(frozen=True)
class LogN(Temperature):
    """Qwen's log-n scaling, max(1, ln n / ln L): nothing is learned, and up to L keys it is 1.

    `train_length` is L in tokens, prompt and answer together.
    """

    kind: ClassVar[str] = "log-n"

    train_length: int = setting(41, at_least=2)

    def factor(self, places: Places) -> Tensor:
        return ((places.index + 1).log() / math.log(self.train_length)).clamp(min=1.0)


@dataclass(frozen=True)
class Adaptive(Temperature):
    """δ + β·(ln n)^γ, where each query decides on β > 0 and γ for each head.

    With `normaliser=entmax15` it is ASEntmax (Vasylenko et al. 2025): β = softplus(w·x) and γ =
    `gamma_range`·tanh(w'·x), of the vector x that the query is made of. As in their code, n counts
    one more than the visible keys, so that ln n > 0. Two things differ from their code: w·x has no
    constant, and with `nape` all heads are scaled, not those without positions alone.
    """

    kind: ClassVar[str] = "adaptive"
    reads_stream: ClassVar[bool] = True

    delta: float = 1.0
    gamma_range: float = 2.0

    def weights(self, model: ModelConfig) -> dict[str, Weight]:
        each = Weight((model.heads, model.width), std=(3 * model.width) ** -0.5)
        return {"beta.weight": each, "gamma.weight": each}

    def bind(self, model: ModelConfig, weights: Mapping[str, Tensor]) -> TemperatureHook:  # noqa: ARG002
        return AdaptiveHook(self, weights["beta.weight"], weights["gamma.weight"])


class AdaptiveHook(TemperatureHook):
    def __init__(self, settings: Adaptive, beta: Tensor, gamma: Tensor) -> None:
        self.settings, self.beta, self.gamma = settings, beta, gamma

    def factor(self, places: Places) -> Tensor:
        from torch.nn import functional

        assert places.stream is not None
        beta = functional.softplus(functional.linear(places.stream, self.beta))
        gamma = self.settings.gamma_range * functional.linear(places.stream, self.gamma).tanh()
        logarithm = (places.index + 2).to(beta.dtype).log()[:, None]
        return self.settings.delta + beta * logarithm**gamma


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
