"""How attention logits scale with length.

Shapes: M queries, H heads, D width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from taskhint.model.weights import Weight
from taskhint.system.settings import Family

if TYPE_CHECKING:
    from torch import Tensor

    from taskhint.model.config import ModelConfig
    from taskhint.model.places import Places


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
class LogVisible(Temperature):
    """The paper's tempered softmax, β·ln n with one learned β per block; n counts the keys that a
    query sees.
    """

    kind: ClassVar[str] = "log-visible"

    initial_beta: float = 0.4

    def weights(self, model: ModelConfig) -> dict[str, Weight]:  # noqa: ARG002
        return {"beta": Weight(mean=self.initial_beta)}

    def bind(self, model: ModelConfig, weights: Mapping[str, Tensor]) -> TemperatureHook:  # noqa: ARG002
        return _Logarithmic(self, weights["beta"])

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


class _Logarithmic(TemperatureHook):
    def __init__(self, settings: LogVisible, beta: Tensor) -> None:
        self.settings, self.beta = settings, beta

    def factor(self, places: Places) -> Tensor:
        return self.beta * self.settings.counted(places).to(self.beta.dtype).log()
